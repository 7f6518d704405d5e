import type { OpenAlertStore, RecentAlert } from "./open-alert-store.ts";
import type { ReviewFacts, RuleResult } from "./review-facts.ts";
import type { RuleSwitch } from "../../records/domains/alert-store.ts";
import type { EventDoc } from "../../../foundation/http/openapi.ts";
import { dayField, integerField } from "../../../foundation/http/schema-fields.ts";
import type { AttentionItem } from "../../../foundation/base/attention.ts";
import {
  cutLine,
  formatCount,
  plural,
  shortName,
  action,
  list,
  type MailBlock,
  type MailItem,
  type MailPageLink,
  pageLink,
} from "../../../notifications/mail/mail-content.ts";
import { z } from "zod";

/** An alert rule: all that the API, mail, chat messages and the dashboard say about it. `Data` is the `data` of its event. */
export interface AlertRule<Schema extends z.ZodObject = z.ZodObject> extends RuleSwitch {
  /** In a few words. */
  readonly words: string;
  /** What it alerts about, in a sentence. */
  readonly description: string;
  /** When its event is sent. */
  readonly summary: string;
  /** Title of chat messages, after the domain. */
  readonly title: string | EventDoc["title"];
  /** Of rules about a problem: which one of the domain, and whether the event ends it; null when it is neither. */
  readonly incident?: NonNullable<EventDoc["incident"]>;
  /** The data of its event, without the fields about the domain that every event has. */
  readonly data: Schema;
  readonly example: z.output<Schema>;
  /** Looks for alerts about a domain for which reports arrived. */
  readonly review?: (facts: ReviewFacts) => RuleResult | Promise<RuleResult>;
  /** Of rules on whose alerts others depend: they are reviewed before those without one, the lowest number first. */
  readonly reviewRank?: number;
  /** The section of an alert in mail. */
  mail(data: z.output<Schema>, domain: LinkedDomain): Blocks;
  /** Of rules whose alerts stay open until something ends them. */
  readonly open?: OpenRule<Schema>;
}

/** How alerts of a rule stay open, and what the dashboard says meanwhile. */
interface OpenRule<Schema extends z.ZodObject> {
  /** Days after which nobody needs to know any more. */
  readonly days?: number;
  /** The last day of what it is about, from which `days` count where it is later than the alert: `2026-01-01`. */
  lastDay?(data: z.output<Schema>): string;
  /** Not shown while the DNS checks of the domain fail, which say it already. */
  readonly isSaidByStatus?: boolean;
  /** What an alert is about, by default its subject: later alerts about all of it replace it. */
  topics?(data: z.output<Schema>): readonly string[];
  /** Reads facts of some domains that `holds` needs, as `<number of the domain> <key>`. */
  facts?(store: OpenAlertStore, domains: readonly number[]): ReadonlySet<string>;
  holds?(alert: RecentAlert & { readonly data: z.output<Schema> }, facts: ReadonlySet<string>): boolean;
  /** `path`: of the pages of the domain. */
  attention(data: z.output<Schema>, place: AlertPlace): Omit<AttentionItem, "sinceMs">;
}

interface AlertPlace {
  readonly domain: string;
  readonly path: string;
}

/** Declares an alert rule. */
export const alertRule = <Schema extends z.ZodObject>(rule: AlertRule<Schema>): AlertRule<Schema> => rule;

const bodySchema = z.object({ summary: z.string(), data: z.record(z.string(), z.unknown()) });

/** Reads the stored body of an alert: its summary and the `data` of its event. */
export const readAlertBody = (body: string): z.output<typeof bodySchema> => bodySchema.parse(JSON.parse(body));

const SHARE_DIGITS = 10_000;

/** A share from 0 to 1 with four digits; 0 of nothing. */
export const shareOf = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round((part / whole) * SHARE_DIGITS) / SHARE_DIGITS;

export const shareField = (description: string) => z.number().min(0).max(1).describe(description);

/** What is said of everything that sends mail: a source, a name. */
export const SENDER_FIELDS = {
  first_day: dayField("The first day in any report (UTC)."),
  messages: integerField("Messages of the last seven days."),
  aligned: integerField("Messages of these that passed DMARC."),
};

/** The blocks of a section; null for one that is not needed. */
export type Blocks = readonly (MailBlock | null)[];

const ITEMS_MAX = 10;
const ITEM_CHARACTERS_MAX = 500;

/** A list; `total` counts items that are left out. */
export const items = (texts: readonly MailItem[], total = texts.length): MailBlock | null =>
  list(
    null,
    texts.map(({ text, lines = [] }) => ({
      text: cutLine(text, ITEM_CHARACTERS_MAX),
      lines: lines.map((each) => cutLine(each, ITEM_CHARACTERS_MAX)),
    })),
    { max: ITEMS_MAX, total },
  );

export const texts = (...all: readonly string[]): MailBlock | null => items(all.map((text) => ({ text })));

/** `1,412 messages, 1,410 passed DMARC`. */
export const passed = ({ messages, aligned }: { readonly messages: number; readonly aligned: number }): string =>
  `${plural(messages, "message")}, ${formatCount(aligned)} passed DMARC`;

/** A domain whose pages a mail leads to. */
export interface LinkedDomain {
  readonly id: string;
  readonly domain: string;
}

/** The pages of a domain by the names that they have in the dashboard. */
const PAGES = {
  overview: { path: "", name: null },
  record: { path: "/record", name: "Record" },
  advice: { path: "/advice", name: "Advice" },
  sources: { path: "/sources", name: "Sources" },
  reports: { path: "/reports", name: "Reports" },
  tls: { path: "/tls", name: "TLS reports" },
  month: { path: "/month", name: "Monthly report" },
} as const;

const KEY_CHARACTERS_MAX = 500;

/** A link to a page of a domain; `text` says what is there, `query` begins with a question mark. */
export const domainLink = (
  { id, domain }: LinkedDomain,
  page: keyof typeof PAGES,
  text: string,
  query = "",
): MailPageLink => {
  const { path, name } = PAGES[page];
  return pageLink(text, `/dmarc/${id}${path}${query}`, ["DMARC", domain, ...(name === null ? [] : [name])].join(" › "));
};

/** A link to one source of a domain; null for a key that is too long for a URL in a mail. */
export const sourceLink = (
  { id, domain }: LinkedDomain,
  { key, name }: { readonly key: string; readonly name: string },
  text: string,
): MailPageLink | null => {
  const path = encodeURIComponent(key.toWellFormed()).replaceAll("'", "%27");
  if (path.length > KEY_CHARACTERS_MAX) return null;
  return pageLink(text, `/dmarc/${id}/sources/${path}`, `DMARC › ${domain} › Sources › ${shortName(name)}`);
};

/** A link to the list of all domains. */
export const allDomainsLink = (): MailPageLink => pageLink("All domains", "/dmarc", "DMARC");

/**
 * The record that the owner of a domain is to publish, by the checks of the last DNS check. Null when it is published already, only
 * the owner can decide, the DNS did not respond, or the record was too long to be stored whole.
 */
export const recordToPublish = (
  checks: ReadonlyArray<{ readonly code: string; readonly observed: string | null; readonly expected: string | null }>,
): string | null => {
  const { observed = null, expected = null } = checks.find(({ code }) => code === "record") ?? {};
  return expected === null || expected === observed || expected.endsWith("…") ? null : expected;
};

/** What the owner of a domain has to publish so that reports arrive: the record itself where it is known. */
export const publishActions = (domain: LinkedDomain, record: string | null): readonly MailBlock[] =>
  record === null
    ? [domainLink(domain, "record", "Show the records to publish")]
    : [
        action(`Publish this TXT record at _dmarc.${domain.domain}:`, record),
        domainLink(domain, "record", "Check the published record"),
      ];
