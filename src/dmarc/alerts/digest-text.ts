import { type DigestSection, type DigestSource, number, plural } from "./digest.ts";
import { hintText, oneLine, shortName } from "./digest-page.ts";
import { footerOf, listCommand } from "./mail-words.ts";

/** What surrounds the domains of a digest. */
export interface DigestFrame {
  /** Domains that are not told of. */
  readonly more: number;
  /** That of the service, without a `/` at the end. */
  readonly baseUrl: string;
}

/** Why the reader gets it, and how that is changed. */
export const digestFooter = ([first]: readonly DigestSection[], { baseUrl }: DigestFrame): string =>
  footerOf(
    { what: "digest", effect: `For ${first?.domain ?? ""} this turns it off` },
    { baseUrl, domainId: first?.domainId ?? "" },
    { digest: "off" },
  );

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

/** The digest as plain text, as complete as the page. */
export const digestText = (sections: readonly DigestSection[], frame: DigestFrame): string =>
  `${[...sections.map(sectionText), ...moreDomains(frame), digestFooter(sections, frame)].join("\n\n")}\n`;

export const moreDomains = ({ more, baseUrl }: DigestFrame): readonly string[] =>
  more > 0 ? [`and ${more} more domains. All of them: ${listCommand(baseUrl)}`] : [];

const sectionText = (section: DigestSection): string => {
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
  const title = `${domain}${label === null ? "" : ` (${shortName(label)})`}, ${days}`;
  return [
    title,
    "=".repeat(title.length),
    ...problems.map((problem) => `PROBLEM: ${oneLine(problem)}`),
    headline,
    ...(change === null ? [] : [change]),
    ...(late === null ? [] : [late]),
    ...listText("Failing sources", section.failing, section.failingMore, failingOf),
    ...listText("New sources", section.newSources, section.newMore, messagesOf),
    ...(spoofing === null ? [] : [oneLine(spoofing)]),
    ...(reporters === null ? [] : [`Reporters: ${oneLine(reporters)}`]),
    ...(untrusted === null ? [] : [untrusted]),
    `Status: ${standing}`,
    `Next step: ${next === null ? "nothing is left to do." : oneLine(next)}`,
    ...hints.flatMap(hintText),
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
