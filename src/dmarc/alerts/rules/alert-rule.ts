import { z } from "zod";
import type { AttentionItem } from "../../../foundation/base/attention.ts";
import { dayField, integerField } from "../../../foundation/http/schema-fields.ts";
import type { EventDoc } from "../../../foundation/http/openapi.ts";
import type { RuleSwitch } from "../../records/domains/alert-store.ts";
import type { Blocks, LinkedDomain } from "./mail-blocks.ts";
import type { ReviewFacts, RuleResult } from "./review-facts.ts";
import type { OpenAlertStore, RecentAlert } from "./alert-rule-store.ts";

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
  /** The data of its event, without the fields about the domain that every event has. */
  readonly data: Schema;
  readonly example: z.output<Schema>;
  /** Looks for alerts about a domain for which reports arrived. */
  readonly review?: (facts: ReviewFacts) => RuleResult;
  /** Rules after it do not count the reporters that it finds. */
  readonly isReviewedFirst?: boolean;
  /** The section of an alert in mail. */
  mail(data: z.output<Schema>, domain: LinkedDomain): Blocks;
  /** Of rules whose alerts stay open until something ends them. */
  readonly open?: OpenRule<Schema>;
}

/** How alerts of a rule stay open, and what the dashboard says meanwhile. */
interface OpenRule<Schema extends z.ZodObject> {
  /** Days after which nobody needs to know any more. */
  readonly days?: number;
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

export interface AlertPlace {
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

export const shareField = (description: string) => z.number().min(0).max(1).meta({ description });

/** What is said of everything that sends mail: a source, a name. */
export const SENDER_FIELDS = {
  first_day: dayField("The first day in any report (UTC)."),
  messages: integerField("Messages of the last seven days."),
  aligned: integerField("Messages of these that passed DMARC."),
};
