import { describe, expect, test } from "bun:test";
import { html, type MarkupValue, trustedMarkup } from "./html.ts";

describe("html", () => {
  const rows: readonly (readonly [string, MarkupValue, string])[] = [
    ["text is escaped", `<b a="1" c='2'>&`, "&lt;b a=&quot;1&quot; c=&#x27;2&#x27;&gt;&amp;"],
    ["a template is not escaped again", html`<i>${"<"}</i>`, "<i>&lt;</i>"],
    ["lists are joined, each item as itself", ["<", html`<b>x</b>`, 1], "&lt;<b>x</b>1"],
    ["null is nothing", null, ""],
    ["undefined is nothing", undefined, ""],
    ["false is nothing", false, ""],
    ["zero is a number", 0, "0"],
    ["trusted markup is kept", trustedMarkup("a > b"), "a > b"],
  ];
  for (const [claim, value, expected] of rows)
    test(claim, () => expect(html`<p>${value}</p>`.text).toBe(`<p>${expected}</p>`));

  test("an attribute in quotes cannot be left", () => {
    expect(html`<a title="${'" onclick="x'}"></a>`.text).toBe('<a title="&quot; onclick=&quot;x"></a>');
  });
});
