import { hostOfWebUrl } from "../../../foundation/mail/domain.ts";
import { z } from "zod";
import type { DbClock } from "../../../foundation/db/runtime.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { WebhookUrls } from "../../../notifications/webhooks/url-store.ts";
import { authorisationName } from "../record/discovery.ts";
import { type DomainPlatforms, type DomainPlatform, parseMonitoredDomain } from "./domain-platform.ts";
import type { DomainOwner, DomainRow, DomainStore } from "./domain-store.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import { nextDnsCheckMs } from "./domain-state.ts";
import { createHash, randomBytes } from "node:crypto";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../../../foundation/mail/recipients.ts";

export interface EnrolmentsDeps extends MailSettings {
  readonly store: DomainStore;
  readonly platforms: DomainPlatforms;
  readonly urls: Pick<WebhookUrls, "enable">;
  /** Whether the reports of the mailbox belong to an account. */
  readonly ownsMailbox: (accountId: string) => boolean;
  /** `raw_retention_days` of new domains; null: as long as possible. */
  readonly rawRetentionDays?: number | null;
}

/** A domain that is enrolled now, or was before (`created` is false). Its DNS is still to be checked. */
export interface EnrolledDomain {
  readonly created: boolean;
  readonly domain: DomainRow;
}

/** Bounds the DNS queries that one account can cause. */
const DOMAINS_PER_ACCOUNT_MAX = 10_000;
/** Domains of one paste. */
export const ENROLLED_AT_ONCE_MAX = 500;
const PROBLEMS_SHOWN_MAX = 5;

/** Puts domains under monitoring, without looking at their DNS. */
export class Enrolments {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: EnrolmentsDeps,
  ) {}

  /** Enrols one domain. Throws an AppError about the field `domain`, and `conflict`. */
  async enrol(caller: DomainOwner, request: EnrolmentRequest): Promise<EnrolledDomain> {
    const [enrolled] = await this.#register(caller, [this.#newRow(caller, request)]);
    if (enrolled === undefined) throw new Error("a domain was not registered");
    return enrolled;
  }

  /**
   * Enrols the domains in a text, separated by line breaks, commas, semicolons or spaces: all of them, or with an AppError about the
   * field `domains` none. Repeated ones count once. Web URLs are read as the domains in them. The new ones get the tags.
   */
  async enrolText(caller: DomainOwner, text: string, tags: readonly string[]): Promise<readonly EnrolledDomain[]> {
    const names = namesIn(text);
    if (names.length === 0) throw domainIssue("domains", "Must be one or more domains, such as example.com");
    if (names.length > ENROLLED_AT_ONCE_MAX) {
      throw domainIssue("domains", `At most ${ENROLLED_AT_ONCE_MAX} domains at once; these are ${names.length}`);
    }
    const problems: string[] = [];
    const rows = names.flatMap((domain) => {
      try {
        return [this.#newRow(caller, { domain, label: null, webhookUrl: null, recipients: [], tags })];
      } catch (error) {
        const [issue] = error instanceof AppError ? (error.details.issues ?? []) : [];
        if (issue === undefined) throw error;
        problems.push(`${shortName(domain)}: ${issue.message}`);
        return [];
      }
    });
    if (problems.length > 0) throw unreadable(problems, names.length);
    return this.#register(caller, [...new Map(rows.map((row) => [row.domain, row])).values()]);
  }

  /** All of the rows, or none. */
  async #register(caller: DomainOwner, rows: readonly Omit<DomainRow, "number">[]): Promise<readonly EnrolledDomain[]> {
    const { store, urls } = this.deps;
    const enrolled = await this.runtime.db.commit((tx) => {
      const found = rows.map((row) => ({ row, same: store.findSame(caller, row.domain) }));
      const added = found.filter(({ same }) => same === undefined).length;
      if (added > 0 && store.count(caller) + added > DOMAINS_PER_ACCOUNT_MAX) return null;
      return found.map(({ row, same }): EnrolledDomain => {
        if (same !== undefined) return { domain: same, created: false };
        const domain = store.insert(tx, row);
        if (row.webhookUrl !== null) urls.enable(tx, row, row.webhookUrl);
        return { domain, created: true };
      });
    });
    if (enrolled !== null) return enrolled;
    throw new AppError("conflict", { message: `An account can monitor ${DOMAINS_PER_ACCOUNT_MAX} domains.` });
  }

  #newRow(caller: DomainOwner, request: EnrolmentRequest): Omit<DomainRow, "number"> {
    const { platforms, rawRetentionDays } = this.deps;
    const parsed = parseMonitoredDomain(request.domain, caller.mode);
    if (!parsed.ok) throw domainIssue("domain", parsed.error);
    refuseRecipients(this.deps, request.recipients);
    const domain = parsed.value;
    this.#refuseForeignMailbox(caller);
    const named = authorisationName(domain, reportHostOrThrow(platforms[caller.mode]));
    if (named.ok) return newDomain(caller, { ...request, domain, rawRetentionDays }, this.runtime.clock.nowMs());
    const { octets, octetsMax } = named.error;
    throw domainIssue(
      "domain",
      `Too long: receivers would have to look up a name of ${octets} octets; the DNS allows ${octetsMax}.`,
    );
  }

  #refuseForeignMailbox({ accountId, mode }: DomainOwner) {
    if (this.deps.platforms[mode].mailbox === null || this.deps.ownsMailbox(accountId)) return;
    throw new AppError("conflict", { message: "The reports of this service's mailbox belong to another account." });
  }
}

/** Words without a dot, such as `foo bar`, are one entry that is no domain. */
const namesIn = (text: string): readonly string[] => {
  const entries = text.split(/[\r\n,;]+/u).map((entry) => entry.trim());
  const names = entries.flatMap((entry) => {
    const words = entry.split(/\s+/u);
    return words.every((word) => word.includes(".")) ? words.map(hostOfWebUrl) : [words.join(" ")];
  });
  return [...new Set(names.filter((name) => name !== ""))];
};

const SHOWN_CHARACTERS_MAX = 60;

const shortName = (name: string) =>
  name.length > SHOWN_CHARACTERS_MAX ? `${name.slice(0, SHOWN_CHARACTERS_MAX).toWellFormed()}…` : name;

const unreadable = (problems: readonly string[], names: number): AppError => {
  // "And 1 more" would take the place of that one.
  const shownMax = problems.length === PROBLEMS_SHOWN_MAX + 1 ? problems.length : PROBLEMS_SHOWN_MAX;
  const more = problems.length - shownMax;
  const shown = problems.slice(0, shownMax);
  return new AppError("Invalid request body", {
    message: `Nothing was enrolled: ${problems.length} of ${names} cannot be monitored.`,
    issues: [{ path: "domains", message: [...shown, ...(more > 0 ? [`And ${more} more.`] : [])].join("\n") }],
  });
};

const TAGS_MAX = 10;
const TAG_CHARACTERS_MAX = 40;
/** Lower-case letters and digits of any script, with `-`, `_`, `.` or `/` between them. */
const TAG_FORM = /^[\p{Ll}\p{Lo}\p{N}][\p{Ll}\p{Lo}\p{N}\p{M}._/-]{0,39}$/u;
const NEEDED = `A tag has 1 to ${TAG_CHARACTERS_MAX} letters and digits, with - _ . or / between them`;

/** A tag as it is stored: in lower case. */
export const tagSchema = z
  .string(NEEDED)
  .trim()
  .transform((text) => text.normalize("NFC").toLowerCase())
  .refine((text) => TAG_FORM.test(text), NEEDED);

/** The tags of a domain: each once, in alphabetical order. */
export const tagsSchema = z
  .array(tagSchema)
  .max(TAGS_MAX, `A domain has at most ${TAGS_MAX} tags`)
  .transform((tags) => [...new Set(tags)].toSorted())
  .meta({
    description: "Your groups of domains, such as one for each client. Upper case becomes lower case.",
    examples: [["client-a", "shops"]],
  });

/** No raw report is kept longer. */
export const RETENTION_DAYS_MAX = 3_650;

export interface EnrolmentRequest {
  readonly domain: string;
  readonly label: string | null;
  readonly webhookUrl: string | null;
  readonly recipients: readonly string[];
  readonly tags: readonly string[];
}

const RETENTION_DAYS = 400;
const RAW_RETENTION_DAYS = 90;

interface NewDomain extends EnrolmentRequest {
  /** By default 90; null: as long as possible. */
  readonly rawRetentionDays?: number | null | undefined;
}

/** The row of a domain enrolled now, with the default settings. `domain` is in lower-case A-labels. */
const newDomain = (
  { accountId, mode }: DomainOwner,
  { domain, label, webhookUrl, recipients, tags, rawRetentionDays = RAW_RETENTION_DAYS }: NewDomain,
  nowMs: number,
): Omit<DomainRow, "number"> => {
  const identity = { id: newId(), mode, status: "pending", badSinceMs: null, createdAtMs: nowMs } as const;
  const timing = { ...identity, isIndefinite: false, unconfirmedSinceMs: null, enforcedEveryMs: null };
  return {
    ...identity,
    accountId,
    domain,
    token: mode === "test" ? testToken(accountId, domain) : newToken(),
    label,
    monitoringEnabled: true,
    webhookUrl,
    recipients,
    alerts: {},
    alertThresholds: {},
    sourceRules: [],
    bulkSenders: [],
    tags,
    digest: "off",
    retentionDays: RETENTION_DAYS,
    rawRetentionDays: Math.min(rawRetentionDays ?? RETENTION_DAYS_MAX, RETENTION_DAYS_MAX),
    sendsMail: null,
    requireAuthenticReports: false,
    storeFailureReports: false,
    failureReportsRedact: true,
    state: null,
    lastCheck: null,
    nextCheckAtMs: nextDnsCheckMs(timing, nowMs),
    usageDay: 0,
    usageBytes: 0,
    lastReportAtMs: null,
    digestDueAtMs: null,
    isUnreviewed: false,
    updatedAtMs: nowMs,
    deletedAtMs: null,
  };
};

/** RFC 4648 §6 in lower case: survives mail systems that fold case or allow letters and digits only. */
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_CHARACTERS = 20;
const BITS_PER_CHARACTER = 5;
const TOKEN_BYTES = Math.ceil((TOKEN_CHARACTERS * BITS_PER_CHARACTER) / 8);
const TOKEN_FORM = /^[a-z2-7]{20}$/;

const tokenOf = (bytes: Uint8Array) => {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`) >> BigInt(bytes.length * 8 - TOKEN_CHARACTERS * 5);
  let text = "";
  while (text.length < TOKEN_CHARACTERS) {
    text = (BASE32[Number(rest % 32n)] ?? "") + text;
    rest /= 32n;
  }
  return text;
};

/** A new local part of a reporting address: 20 lower-case letters and digits with 100 random bits. */
export const newToken = (): string => tokenOf(randomBytes(TOKEN_BYTES));

/** The local part for a domain of a test key: always the same for an account and domain, so that responses can be fixtures. */
export const testToken = (accountId: string, domain: string): string =>
  tokenOf(createHash("sha256").update(`dmarc-test-key ${accountId} ${domain}`).digest().subarray(0, TOKEN_BYTES));

/** Whether a text (lower case) has the form of a token; anything else needs no database query. */
export const isToken = (text: string): boolean => TOKEN_FORM.test(text);

/** A field of a request that is refused, with the reason. */
export const domainIssue = (
  path: string,
  message: string,
  code: "Invalid request body" | "Invalid query" = "Invalid request body",
) => new AppError(code, { issues: [{ path, message }] });

/** The host that reports are sent to. Throws `conflict` when the service receives none. */
export const reportHostOrThrow = ({ reportHost }: Pick<DomainPlatform, "reportHost">): string => {
  if (reportHost !== null) return reportHost;
  throw new AppError("conflict", {
    message:
      "This service receives no reports: POSTWARDEN_REPORT_HOST is not set, nor the address of a mailbox (POSTWARDEN_IMAP_ADDRESS).",
  });
};

/** What mail to recipients depends on. */
interface MailSettings {
  /** Whether the service can send mail. */
  readonly hasMail: boolean;
  readonly recipientDomains: RecipientDomains;
}

/** Throws when a setting requires mail, and the service cannot send any. */
export const refuseWithoutMail = (
  { hasMail }: Pick<MailSettings, "hasMail">,
  path: "recipients" | "digest",
  isRequested: boolean,
): void => {
  if (isRequested && !hasMail) throw domainIssue(path, NO_MAIL_PROBLEM);
};

/** Throws when mail cannot be sent, or not to these addresses. */
export const refuseRecipients = (settings: MailSettings, recipients: readonly string[]): void => {
  refuseWithoutMail(settings, "recipients", recipients.length > 0);
  const problem = recipientsProblem(recipients, settings.recipientDomains);
  if (problem !== null) throw domainIssue("recipients", problem);
};
