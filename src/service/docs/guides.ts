import signUpForms from "./manual/sign-up-forms.md" with { type: "text" };
import agentsAndScripts from "./manual/agents-and-scripts.md" with { type: "text" };
import blocklists from "./manual/blocklists.md" with { type: "text" };
import capacity from "./manual/capacity.md" with { type: "text" };
import dashboard from "./manual/dashboard.md" with { type: "text" };
import dmarcAdvice from "./manual/dmarc-alerts.md" with { type: "text" };
import dmarcReports from "./manual/dmarc-reports.md" with { type: "text" };
import dmarcSenders from "./manual/dmarc-senders.md" with { type: "text" };
import gettingStarted from "./manual/getting-started.md" with { type: "text" };
import mtaSts from "./manual/mta-sts.md" with { type: "text" };
import outgoingMail from "./manual/outgoing-mail.md" with { type: "text" };
import lists from "./manual/lists.md" with { type: "text" };
import releaseNotes from "./manual/release-notes.md" with { type: "text" };
import runningIt from "./manual/running-it.md" with { type: "text" };
import securityAndPrivacy from "./manual/security-and-privacy.md" with { type: "text" };
import senderReputation from "./manual/sender-reputation.md" with { type: "text" };
import verifyAnAddress from "./manual/verify-an-address.md" with { type: "text" };
import channels from "./manual/channels.md" with { type: "text" };
import webhooksAndMail from "./manual/webhooks-and-mail.md" with { type: "text" };

/** A page of the manual that is written in Markdown; its title is its first heading. */
export interface Guide {
  /** The name of the page in URLs, and the topic of `postwarden help`. */
  readonly slug: string;
  readonly title: string;
  readonly text: string;
}

/** The title of a Markdown text: its first heading. */
const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? "";

export const guideOf = (slug: string, text: string): Guide => ({ slug, title: titleOf(text), text });

/** Every guide, in the order in which a person needs them. */
export const GUIDES: readonly Guide[] = Object.entries({
  "getting-started": gettingStarted,
  "verify-an-address": verifyAnAddress,
  lists,
  blocklists,
  "dmarc-reports": dmarcReports,
  "dmarc-senders": dmarcSenders,
  "dmarc-alerts": dmarcAdvice,
  "mta-sts": mtaSts,
  "outgoing-mail": outgoingMail,
  "webhooks-and-mail": webhooksAndMail,
  channels,
  "sign-up-forms": signUpForms,
  "agents-and-scripts": agentsAndScripts,
  dashboard,
  "sender-reputation": senderReputation,
  "running-it": runningIt,
  "security-and-privacy": securityAndPrivacy,
  capacity,
  "release-notes": releaseNotes,
}).map(([slug, text]) => guideOf(slug, text));

/** A link of a guide to a section of another guide, `name.md#section`, or of its own, `#section`. */
const GUIDE_LINK = /\[([^\]]{0,200})\]\((?:([a-z0-9-]+)\.md)?(?:#[a-z0-9_-]+)?\)/g;

/** The anchor of a heading in the pages; `assets/manual.js` knows it, too. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");

const HEADING_LINE = /^(#{2,3}) (.+)$/;

/** One section of a guide, with the sections below it; undefined when there is none with this anchor. */
export const sectionOf = ({ slug, text }: Guide, anchor: string): Guide | undefined => {
  const lines = text.split("\n");
  const levelAt = (at: number): number => HEADING_LINE.exec(lines[at] ?? "")?.[1]?.length ?? 0;
  const begin = lines.findIndex((line) => anchorOf(HEADING_LINE.exec(line)?.[2] ?? "") === anchor);
  if (begin < 0 || anchor === "") return undefined;
  let end = begin + 1;
  while (end < lines.length && (levelAt(end) === 0 || levelAt(end) > levelAt(begin))) end += 1;
  return { slug, title: HEADING_LINE.exec(lines[begin] ?? "")?.[2] ?? "", text: lines.slice(begin, end).join("\n") };
};

/** The pages about the API are too long for a terminal: the service alone has them. */
const ONLY_SERVED = /^reference-(api|events)/;

/** A guide for the terminal: links to other guides name the command that prints them. */
export const terminalText = ({ text }: Guide, theme: { readonly colors: boolean; readonly columns: number }): string =>
  Bun.markdown.ansi(
    text.replaceAll(GUIDE_LINK, (_, words: string, slug: string | undefined) => {
      if (slug === undefined) return words;
      return `${words} (${ONLY_SERVED.test(slug) ? `/docs/${slug} of the service` : `postwarden help ${slug}`})`;
    }),
    theme,
  );
