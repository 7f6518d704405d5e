import { describe, expect, test } from "bun:test";
import { action, composeMail, line, list, type MailContent } from "./mail-content.ts";

const CONTENT: MailContent = {
  subject: "Two things\r\nhappened",
  sections: [
    {
      heading: "example.com",
      label: "shop",
      blocks: [
        line("No reports.", "bad"),
        line(null),
        list(
          "Sources",
          [
            { text: "a", lines: ["since yesterday"] },
            { text: "b", tone: "good" },
          ],
          { max: 5 },
        ),
        list("None", [], { max: 5 }),
        list(null, [{ text: "c" }, { text: "d" }, { text: "e" }], { max: 2, total: 7 }),
        action("Publish this TXT record:", "v=DMARC1; p=none"),
        action("Then wait."),
      ],
    },
  ],
  closing: ["You receive this mail as a recipient."],
};

describe("a mail", () => {
  test("is plain text and HTML of one description", () => {
    const { subject, text, html } = composeMail(CONTENT);
    expect(subject).toBe("Two things happened");
    expect(text).toBe(`example.com (shop)
PROBLEM: No reports.
Sources:
  - a
    since yesterday
  - b
  - c
  - d
  - and 5 more
Publish this TXT record:
    v=DMARC1; p=none
Then wait.

You receive this mail as a recipient.
`);
    for (const said of text.replaceAll(/^ *(?:- |PROBLEM: )?|[:()]|$/gm, "").split(/\n+|(?<=example.com) /))
      expect(html).toContain(said);
    expect(html).not.toContain("undefined");
  });

  test("escapes what strangers wrote, wherever it stands, and keeps it on its line", () => {
    const evil = `"><script>alert('x')</script>\n&<img src=x onerror=y>\u202E`;
    const { text, html } = composeMail({
      subject: evil,
      sections: [
        {
          heading: evil,
          label: evil,
          blocks: [line(evil), list(evil, [{ text: evil, lines: [evil] }], { max: 1 }), action(evil, evil)],
        },
      ],
      closing: [evil],
    });
    expect(html).not.toMatch(/<script|<img|\u202E/);
    expect(html.match(/&lt;script&gt;/g)).toHaveLength(11);
    expect(text).not.toMatch(/\u202E|^&/m);
  });
});
