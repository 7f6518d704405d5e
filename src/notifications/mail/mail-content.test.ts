import { describe, expect, test } from "bun:test";
import { composeMail } from "./compose-mail.ts";
import { action, line, list, type MailContent, pageLink, shortName } from "./mail-content.ts";
import { MAIL_LINKS } from "../../testing/mailing.ts";

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
            { text: "a", lines: ["since yesterday"], path: "/a" },
            { text: "b", tone: "good" },
          ],
          { max: 5 },
        ),
        list("None", [], { max: 5 }),
        list(null, [{ text: "c" }, { text: "d" }, { text: "e" }], { max: 2, total: 7 }),
        action("Publish this TXT record:", "v=DMARC1; p=none"),
        action("Then wait."),
        pageLink("Open example.com", "/dmarc/1", "DMARC › example.com"),
      ],
    },
  ],
  closing: ["You receive this mail as a recipient."],
};

describe("a mail", () => {
  test("is plain text and HTML of one description", () => {
    const { subject, text, html } = composeMail(CONTENT, MAIL_LINKS);
    expect(subject).toBe("Two things happened");
    expect(text).toBe(`example.com (shop)
PROBLEM: No reports.
Sources:
  - a
    since yesterday
    https://verify.example.org/a
  - b
  - c
  - d
  - and 5 more
Publish this TXT record:
    v=DMARC1; p=none
Then wait.
Open example.com: https://verify.example.org/dmarc/1

You receive this mail as a recipient.
`);
    for (const said of text
      .replaceAll(/^ *(?:- |PROBLEM: )?|: (?=https)|:$|[()]/gm, "")
      .split(/\n+|(?<=example.com) ?(?=\bshop|https)/))
      expect(html).toContain(said);
    expect(html).not.toContain("undefined");
  });

  test("escapes what strangers wrote, wherever it stands, and keeps it on its line", () => {
    const evil = `"><script>alert('x')</script>\n&<img src=x onerror=y>\u202E`;
    const { text, html } = composeMail(
      {
        subject: evil,
        sections: [
          {
            heading: evil,
            label: evil,
            blocks: [
              line(evil),
              pageLink(evil, "/x", evil),
              list(evil, [{ text: evil, lines: [evil] }], { max: 1 }),
              action(evil, evil),
            ],
          },
        ],
        closing: [evil, pageLink(evil, "/x", evil)],
      },
      { ...MAIL_LINKS, baseUrl: null, off: { what: evil, recipient: evil, path: "/off", command: evil } },
    );
    expect(html).not.toMatch(/<script|<img|\u202E/);
    expect(html.match(/&lt;script&gt;/g)).toHaveLength(18);
    expect(text).not.toMatch(/\u202E|^&/m);
  });

  test("names the page and a command where the service has no base URL", () => {
    const off = { what: "alerts", recipient: "a@example.com", path: "/off", command: "postwarden x" };
    const { text, html } = composeMail(CONTENT, { ...MAIL_LINKS, baseUrl: null, off });
    for (const said of [
      "Open example.com: DMARC › example.com in the dashboard.",
      "To stop alerts to a@example.com, open Settings › Notifications in the dashboard, or run: postwarden x",
    ])
      expect([text.includes(said), html.includes(said)]).toEqual([true, true]);
    expect(text + html).not.toMatch(/href|https?:|null/);
  });
});

test.each([
  ["a".repeat(120), "a".repeat(120)],
  ["a".repeat(121), `${"a".repeat(119)}…`],
  [" two\r\nlines\u202e ", "two lines"],
])("the name %p is written as %p", (name, written) => {
  expect(shortName(name)).toBe(written);
});
