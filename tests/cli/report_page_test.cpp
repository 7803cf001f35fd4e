// report.html as a browser shows it, where chromium is installed: no message on its console, nothing that sticks out of the
// page, every part of a launch a row, the chart within its axes, and a picture that is not blank.
#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/cli/cli.h"

namespace report_page_test {

using namespace oclc;
using namespace oclc::test;

// Appended to a copy of the page: what it measures stands in the title afterwards.
constexpr const char* kMeasure = R"(<script>
const rects = [...document.querySelectorAll('rect.buffer')].map(r => r.getBBox());
document.title = JSON.stringify({
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  rows: document.querySelectorAll('tr').length, parts: document.querySelectorAll('tr.part').length,
  buffers: rects.length, charts: document.querySelectorAll('svg').length,
  outside: rects.filter(r => r.x < 79.9 || r.x + r.width > 1190.1 || r.y < 11.9 || r.y + r.height > 330.1).length,
  labels: document.querySelectorAll('svg text').length, height: document.documentElement.scrollHeight });
</script>)";

struct Page {
  Folder folder;
  std::string chromium =
      "chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1000 --user-data-dir=" +
      (folder.path / "profile").string() + " ";
  std::string at(const std::string& name) const { return (folder.path / name).string(); }

  // What kMeasure found.
  nlohmann::json measured() const {
    folder.add("measured.html", read_bytes(folder.path / "out/report.html") + kMeasure);
    const Outcome o = run(chromium + "--enable-logging=stderr --dump-dom file://" + at("measured.html"));
    CHECK(o.status == 0);
    CHECK_MESSAGE(!has(o.text, "CONSOLE"), o.text);
    const std::size_t begin = o.text.find("<title>") + 7;
    return nlohmann::json::parse(o.text.substr(begin, o.text.find("</title>") - begin));
  }

  // Colours of a picture of the page.
  std::set<unsigned> colours() const {
    REQUIRE(run(chromium + "--screenshot=" + at("page.png") + " file://" + at("out/report.html")).status == 0);
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    REQUIRE(png_image_begin_read_from_file(&image, at("page.png").c_str()) != 0);
    image.format = PNG_FORMAT_RGB;
    std::vector<png_byte> pixels(PNG_IMAGE_SIZE(image));
    REQUIRE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) != 0);
    CHECK(image.width == 1280);
    std::set<unsigned> found;
    for (std::size_t i = 0; i + 2 < pixels.size(); i += 3)
      found.insert(static_cast<unsigned>(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]));
    return found;
  }
};

// A chain of so many layers that fusion cannot join: products with sums between them.
std::string chain(int layers) {
  Writer w;
  w.input("x", {4, 8}).output("y", {4, 8});
  std::string before = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    w.floats("w" + n, {8, 8}, std::vector<float>(64, 0.1f));
    w.node("MatMul", {before, "w" + n}, {"p" + n}, "a_rather_long_name_of_a_layer/with/parts/product_" + n);
    const std::string out = i + 1 == layers ? "y" : "s" + n;
    w.node("Softmax", {"p" + n}, {out}, "softmax_" + n);
    before = out;
  }
  return w.bytes();
}

TEST_CASE("report.html is right in a browser, of few nodes and of many") {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) {
    MESSAGE("the page is not looked at: there is no chromium");
    return;
  }
  for (const int layers : {2, 100, 1000}) {
    CAPTURE(layers);
    const Page page;
    page.folder.add("model.onnx", chain(layers));
    REQUIRE(run_oclc(page.at("model.onnx") + " --target cpu -q --emit-dir " + page.at("out")).status == 0);
    const nlohmann::json found = page.measured();
    CAPTURE(found.dump());
    CHECK(found["wide"] == false);
    CHECK(found["charts"] == 1);
    CHECK(found["outside"] == 0);
    CHECK(found["buffers"] >= 1);
    CHECK(found["parts"] >= layers);
    CHECK(found["labels"] >= 8);
    const std::set<unsigned> colours = page.colours();
    CHECK(colours.contains(0xFFFFFF));
    CHECK(colours.size() > 20);
  }
}

}  // namespace report_page_test
