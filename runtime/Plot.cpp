// Plain SVG text. Long runs are drawn through the means of at most kMaxPoints neighbouring stretches.
#include "runtime/Plot.h"

#include "runtime/AtomicFile.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace llmc {

namespace {

constexpr double kWidth = 800, kHeight = 450, kLeft = 70, kRight = 20, kTop = 44, kBottom = 54;
constexpr size_t kMaxPoints = 1000;

struct Point {
  double step, loss;
};

/// Round numbers that span a range: first tick at or below, step 1, 2 or 5 times a power of ten.
struct Ticks {
  double first, step, last;
  int decimals;
};

Ticks roundTicks(double low, double high, double wanted) {
  double raw = std::max(high - low, 1e-12) / wanted, power = std::pow(10, std::floor(std::log10(raw)));
  double factor = raw / power <= 1 ? 1 : raw / power <= 2 ? 2 : raw / power <= 5 ? 5 : 10;
  double step = factor * power;
  int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  return {std::floor(low / step + 1e-9) * step, step, std::ceil(high / step - 1e-9) * step, decimals};
}

std::vector<Point> collectPoints(std::span<const double> losses) {
  std::vector<Point> points;
  size_t stretch = std::max<size_t>(1, (losses.size() + kMaxPoints - 1) / kMaxPoints);
  for (size_t begin = 0; begin < losses.size(); begin += stretch) {
    double sum = 0, count = 0;
    size_t end = std::min(losses.size(), begin + stretch);
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(losses[i])) {
        sum += losses[i];
        ++count;
      }
    if (count > 0)
      points.push_back({(static_cast<double>(begin + end) + 1) / 2, sum / count});
  }
  return points;
}

/// Mean over a window of neighbours on both sides, a twentieth of the curve.
std::vector<Point> smooth(const std::vector<Point> &points) {
  size_t reach = points.size() / 40;
  std::vector<Point> result;
  for (size_t i = 0; i < points.size(); ++i) {
    size_t near = std::min({reach, i, points.size() - 1 - i});
    double sum = 0;
    for (size_t j = i - near; j <= i + near; ++j)
      sum += points[j].loss;
    result.push_back({points[i].step, sum / static_cast<double>(2 * near + 1)});
  }
  return result;
}

std::string escape(const std::string &text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '<'                             ? "&lt;"
               : c == '>'                           ? "&gt;"
               : c == '&'                           ? "&amp;"
               : static_cast<unsigned char>(c) < 32 ? " "
                                                    : std::string(1, c);
  return escaped;
}

class Canvas {
public:
  Canvas(Ticks x, Ticks y) : x(x), y(y) {}

  double placeX(double step) const { return kLeft + (step - x.first) / (x.last - x.first) * (kWidth - kLeft - kRight); }
  double placeY(double loss) const {
    return kHeight - kBottom - (loss - y.first) / (y.last - y.first) * (kHeight - kTop - kBottom);
  }

  void axes() {
    for (double tick = y.first; tick <= y.last + y.step / 2; tick += y.step)
      text += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
                          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f}</text>\n",
                          kLeft, kWidth - kRight, placeY(tick), placeY(tick), kLeft - 8, placeY(tick) + 4, tick,
                          y.decimals);
    for (double tick = x.first; tick <= x.last + x.step / 2; tick += x.step)
      text += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
                          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.{5}f}</text>\n",
                          placeX(tick), kTop, kHeight - kBottom, kHeight - kBottom + 18, tick, x.decimals);
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text>\n", (kLeft + kWidth - kRight) / 2,
                        kHeight - 14);
    text += fmt::format(
        "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">loss (nats per token)</text>\n",
        (kTop + kHeight - kBottom) / 2);
  }

  void line(const char *style, const std::vector<Point> &points) {
    text += fmt::format("<polyline class=\"{}\" points=\"", style);
    for (const Point &point : points)
      text += fmt::format("{:.1f},{:.1f} ", placeX(point.step), placeY(point.loss));
    text += "\"/>\n";
  }

  std::string text;

private:
  Ticks x, y;
};

} // namespace

std::string renderLossPlot(const LossPlot &plot) {
  std::vector<Point> points = collectPoints(plot.losses);
  auto [low, high] =
      std::minmax_element(points.begin(), points.end(), [](const Point &a, const Point &b) { return a.loss < b.loss; });
  Ticks y = points.empty() ? Ticks{0, 0.5, 1, 1} : roundTicks(low->loss, std::max(high->loss, low->loss + 1e-6), 6);
  Ticks x = roundTicks(0, std::max<double>(1, static_cast<double>(plot.losses.size())), 8);
  Canvas canvas(x, y);
  canvas.axes();
  canvas.line("raw", points);
  canvas.line("smooth", smooth(points));
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n"
      "<style>\n"
      ":root {{ --ground: #fff; --ink: #24292f; --faint: #d8dee4; --curve: #0969da; }}\n"
      "@media (prefers-color-scheme: dark) {{ :root {{ --ground: #0d1117; --ink: #e6edf3; --faint: #30363d; --curve: "
      "#58a6ff; }} }}\n"
      "text {{ font: 13px system-ui, sans-serif; fill: var(--ink); }}\n"
      ".grid {{ stroke: var(--faint); }}\n"
      "polyline {{ fill: none; stroke: var(--curve); stroke-linejoin: round; }}\n"
      ".raw {{ stroke-width: 1; opacity: 0.35; }}\n"
      ".smooth {{ stroke-width: 2.5; }}\n"
      "</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"var(--ground)\"/>\n"
      "<text x=\"{2}\" y=\"26\" style=\"font-size: 16px\">{3}</text>\n{4}</svg>\n",
      kWidth, kHeight, kLeft, escape(plot.title), canvas.text);
}

Status writeLossPlot(const std::string &path, const LossPlot &plot) {
  std::string text = renderLossPlot(plot);
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

} // namespace llmc
