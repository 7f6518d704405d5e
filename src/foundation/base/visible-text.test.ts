import { expect, test } from "bun:test";
import fc from "fast-check";
import { safeLine, visibleMarkup } from "./visible-text.ts";

test.each([
  ["an escape sequence", "a\u001b[31mb", "a\\u001b[31mb"],
  ["a reversed name", "invoice\u202efdp.exe", "invoice\\u202efdp.exe"],
  ["an isolate", "\u2066x\u2069", "\\u2066x\\u2069"],
  ["a zero-width space and a joiner within a name", "pay\u200bpal pay\u200cpal", "pay\\u200bpal pay\\u200cpal"],
  ["a lone surrogate", "\ud800x", "\\ud800x"],
  ["a tag character", "\u{e0041}", "\\udb40\\udc41"],
])("%s is shown in a page as on a terminal", (_, text, shown) => {
  expect([visibleMarkup(`<p>${text}</p>`), safeLine(text)]).toEqual([`<p>${shown}</p>`, shown]);
});

test.each([
  ["white space", "a\tb\r\nc\u00a0d"],
  ["a family", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u2764\ufe0f"],
  ["Persian words", "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"],
  ["words of many scripts", "M\u00fcnchen \u5317\u4eac \u05e9\u05dc\u05d5\u05dd"],
])("%s stays as it is", (_, text) => expect(visibleMarkup(`<p>${text}</p>`)).toBe(`<p>${text}</p>`));

test("what a form sends back stays as it is, and nothing can pass for it", () => {
  const kept = '<input value="a\u200bb"><textarea name="x" title="\u200b > 1">a\u202eb</textarea>';
  expect(visibleMarkup(kept)).toBe(kept.replace("\u200b > 1", "\\u200b > 1"));
  expect(visibleMarkup("<p> value=&quot;\u202e&quot; &lt;textarea>\u202e&lt;/textarea></p>")).not.toContain("\u202e");
});

test("a long text of any kind takes time in proportion", () => {
  fc.assert(
    fc.property(fc.constantFrom(' value="', "<textarea ", "<textarea>", '"', "\u202e", '<textarea title="'), (part) => {
      const text = `${part.repeat(20_000)}\u202e`;
      expect(visibleMarkup(text).length).toBeGreaterThanOrEqual(text.length);
    }),
    { numRuns: 12 },
  );
});
