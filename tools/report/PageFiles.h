// The page's parts, which the build takes from the folder page/.
#pragma once

#include <string>

namespace llmc {

extern const std::string kPageHtml; ///< with @TITLE@, @STYLE@, @DATA@ and @SCRIPT@ to be filled in
extern const std::string kPageCss;
extern const std::string kPageScript;

} // namespace llmc
