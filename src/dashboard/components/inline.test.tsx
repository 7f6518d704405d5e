import { expect, test } from "bun:test";
import { renderToString } from "preact-render-to-string";
import { HelpText } from "./inline.tsx";

const shown = (text: string): string => renderToString(<HelpText text={text} />).replaceAll(/<\/?time[^>]*>/g, "");

test.each([
  ["Mail has failed since 2026-11-24 (fail).", "Mail has failed since 24 Nov 2026 (fail)."],
  ["From 2026-11-24 to 2026-11-26.", "From 24 Nov 2026 to 26 Nov 2026."],
  ["At 2026-11-24T10:00:00Z.", "At 2026-11-24T10:00:00Z."],
  ["Report mail-2026-11-24-1 and 12026-11-24", "Report mail-2026-11-24-1 and 12026-11-24"],
  ["No day at all", "No day at all"],
])("%s: days of texts stand as everywhere on pages", (text, expected) => {
  expect(shown(text)).toBe(expected);
});

test("the exact day is on the element, and sections of the manual are links", () => {
  const html = renderToString(<HelpText text="Since 2026-11-24: see `postwarden help dmarc-alerts#advice`." />);
  expect(html).toBe(
    'Since <time datetime="2026-11-24" title="2026-11-24">24 Nov 2026</time>: see <a href="/docs/dmarc-alerts#advice">the manual</a>.',
  );
});
