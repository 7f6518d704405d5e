import { type DigestSection, type DigestSource, number, plural } from "./digest.ts";
import { oneLine, shortName } from "./digest-page.ts";

/** Why the reader gets it, and how that is changed. */
export const DIGEST_FOOTER =
  "You get this digest because you are a recipient of these domains. PATCH /v1/dmarc/domains/{id} with digest or recipients changes that.";

/** What the mail is about, for its subject line. `sections` is not empty. */
export const digestSubject = (sections: readonly DigestSection[]): string => {
  const [only] = sections;
  if (sections.length === 1 && only !== undefined) {
    const what = only.hasReports ? only.headline : "no reports";
    return `DMARC digest for ${only.domain}, ${only.days}: ${what}`;
  }
  const problems = sections.filter((section) => section.problems.length > 0 || !section.hasReports).length;
  return `DMARC digest: ${sections.length} domains${problems === 0 ? "" : `, ${problems} without reports or with problems`}`;
};

/** The digest as plain text, as complete as the page. `more` domains are not told of. */
export const digestText = (sections: readonly DigestSection[], more: number): string =>
  `${[...sections.map(sectionText), ...moreDomains(more), DIGEST_FOOTER].join("\n\n")}\n`;

export const moreDomains = (more: number): readonly string[] =>
  more > 0 ? [`and ${more} more domains; GET /v1/dmarc/domains lists them.`] : [];

const sectionText = (section: DigestSection): string => {
  const { domain, label, days, problems, headline, change, reporters, standing, next, nextRecord } = section;
  const title = `${domain}${label === null ? "" : ` (${shortName(label)})`}, ${days}`;
  return [
    title,
    "=".repeat(title.length),
    ...problems.map((problem) => `PROBLEM: ${oneLine(problem)}`),
    headline,
    ...(change === null ? [] : [change]),
    ...listText("Failing sources", section.failing, section.failingMore, failingOf),
    ...listText("New sources", section.newSources, section.newMore, messagesOf),
    ...(reporters === null ? [] : [`Reporters: ${oneLine(reporters)}`]),
    `Status: ${standing}`,
    `Next step: ${next === null ? "nothing is left to do." : oneLine(next)}`,
    ...(nextRecord === null ? [] : [`  ${oneLine(nextRecord)}`]),
  ].join("\n");
};

/** How much of a source's mail fails. */
export const failingOf = ({ failing, messages }: DigestSource): string =>
  `${number(failing)} of ${number(messages)} fail`;
export const messagesOf = ({ messages }: DigestSource): string => plural(messages, "message");

const listText = (
  title: string,
  sources: readonly DigestSource[],
  more: number,
  count: (source: DigestSource) => string,
): readonly string[] => {
  if (sources.length === 0) return [];
  const rows = sources.map((source) => `  - ${shortName(source.name)}, ${source.classification}: ${count(source)}`);
  return [`${title}:`, ...rows, ...(more > 0 ? [`  - and ${more} more`] : [])];
};
