import type { DigestSection, DigestSource } from "./digest.ts";
import { BAD, GOOD, hintHtml, type Html, mailPage, MUTED, safe, shortName, WRAP } from "./digest-page.ts";
import { digestFooter, type DigestFrame, failingOf, messagesOf, moreDomains } from "./digest-text.ts";

const COLOURS: Readonly<Record<string, string>> = { authorized: GOOD, threat: BAD, misconfigured: BAD };

/** The digest as a page: one column for a phone, all styles inline, nothing loaded from elsewhere. */
export const digestHtml = (title: string, sections: readonly DigestSection[], frame: DigestFrame): string =>
  mailPage(
    title,
    [...sections.map(sectionHtml), ...moreDomains(frame).map((line) => safe`<p style="${WRAP}">${line}</p> `)],
    digestFooter(sections, frame),
  );

const sectionHtml = (section: DigestSection): Html => {
  const {
    domain,
    label,
    days,
    problems,
    headline,
    change,
    late,
    spoofing,
    reporters,
    untrusted,
    standing,
    next,
    hints,
  } = section;
  const named = label === null ? null : safe` <span style="${MUTED};font-weight:normal">${shortName(label)}</span>`;
  const lines = [
    ...(spoofing === null ? [] : [spoofing]),
    `Status: ${standing}`,
    ...(reporters === null ? [] : [`Reporters: ${reporters}`]),
    ...(untrusted === null ? [] : [untrusted]),
  ];
  return safe`<section style="border-top:1px solid #888888;margin:0 0 24px;padding:16px 0 0">
    <h2 style="font-size:18px;line-height:1.3;margin:0;${WRAP}">${domain}${named}</h2>
    <p style="${MUTED};font-size:13px;margin:0 0 8px">${days}</p>
    ${problems.map((problem) => safe`<p style="${BAD};font-weight:bold;margin:8px 0">${problem}</p> `)}
    <p style="font-weight:bold;margin:8px 0 0">${headline}</p>
    ${change === null ? null : safe`<p style="margin:0 0 8px">${change}</p> `}${late === null ? null : safe`<p style="${MUTED};font-size:13px;margin:0 0 8px">${late}</p> `}${listHtml("Failing sources", section.failing, section.failingMore, failingOf)}${listHtml("New sources", section.newSources, section.newMore, messagesOf)}${lines.map((line) => safe`<p style="margin:8px 0;${WRAP}">${line}</p> `)}
    <div style="border-left:4px solid #888888;margin:12px 0 0;padding:4px 12px">
      <p style="margin:0"><strong>Next step:</strong> ${next ?? "nothing is left to do."}</p>
      ${hints.map(hintHtml)}
    </div>
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
