import type { DigestSection, DigestSource } from "./digest.ts";
import { BAD, GOOD, type Html, mailPage, MUTED, safe, shortName } from "./digest-page.ts";
import { DIGEST_FOOTER, failingOf, messagesOf, moreDomains } from "./digest-text.ts";

const WRAP = "overflow-wrap:anywhere";
const COLOURS: Readonly<Record<string, string>> = { authorized: GOOD, threat: BAD, misconfigured: BAD };

/** The digest as a page: one column for a phone, all styles inline, nothing loaded from elsewhere. */
export const digestHtml = (title: string, sections: readonly DigestSection[], more: number): string =>
  mailPage(
    title,
    [...sections.map(sectionHtml), ...moreDomains(more).map((line) => safe`<p>${line}</p> `)],
    DIGEST_FOOTER,
  );

const sectionHtml = (section: DigestSection): Html => {
  const { domain, label, days, problems, headline, change, reporters, standing, next, nextRecord } = section;
  const named = label === null ? null : safe` <span style="${MUTED};font-weight:normal">${shortName(label)}</span>`;
  const lines = [`Status: ${standing}`, ...(reporters === null ? [] : [`Reporters: ${reporters}`])];
  const record = nextRecord === null ? null : safe`<br><code style="font-size:14px;${WRAP}">${nextRecord}</code>`;
  return safe`<section style="border-top:1px solid #888888;margin:0 0 24px;padding:16px 0 0">
    <h2 style="font-size:18px;line-height:1.3;margin:0;${WRAP}">${domain}${named}</h2>
    <p style="${MUTED};font-size:13px;margin:0 0 8px">${days}</p>
    ${problems.map((problem) => safe`<p style="${BAD};font-weight:bold;margin:8px 0">${problem}</p> `)}
    <p style="font-weight:bold;margin:8px 0 0">${headline}</p>
    ${change === null ? null : safe`<p style="margin:0 0 8px">${change}</p> `}${listHtml("Failing sources", section.failing, section.failingMore, failingOf)}${listHtml("New sources", section.newSources, section.newMore, messagesOf)}${lines.map((line) => safe`<p style="margin:8px 0;${WRAP}">${line}</p> `)}
    <p style="border-left:4px solid #888888;margin:12px 0 0;padding:4px 12px">
      <strong>Next step:</strong> ${next ?? "nothing is left to do."}${record}
    </p>
  </section> `;
};

const listHtml = (
  title: string,
  sources: readonly DigestSource[],
  more: number,
  count: (source: DigestSource) => string,
): Html | null => {
  if (sources.length === 0) return null;
  const rows = sources.map(
    (source) =>
      safe`<li style="margin:0 0 4px;${WRAP}">
        ${shortName(source.name)},
        <span style="${COLOURS[source.classification] ?? MUTED}">${source.classification}</span>: ${count(source)}
      </li> `,
  );
  const rest = more > 0 ? safe`<li style="${MUTED}">and ${more} more</li> ` : null;
  return safe`<h3 style="font-size:15px;margin:12px 0 4px">${title}</h3>
    <ul style="margin:0;padding-left:20px">
      ${rows}${rest}
    </ul> `;
};
