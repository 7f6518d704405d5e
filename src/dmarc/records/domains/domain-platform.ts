import fixture from "../../../../fixtures/dmarc/test-domains.json" with { type: "json" };
import { z } from "zod";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import {
  type DnsRecordData,
  type DnsResponse,
  type DnsResolver,
  type DnsType,
  emptyResponse,
} from "../../../foundation/net/dns.ts";
import { authorisationName, serviceRecords } from "../record/discovery.ts";
import { mergeRua } from "../record/merge.ts";
import { recordHost } from "../record/record.ts";
import { isIP } from "node:net";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import { describeNoDomain } from "../../../foundation/mail/address-problem.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";
import { isPublicSuffix } from "../../../foundation/mail/organisational-domain.ts";

/** A domain whose DNS is checked. */
export interface TestDomain {
  readonly domain: string;
  /** The reporting address of the domain. */
  readonly ours: string;
  readonly reportHost: string;
  /** Whether the owner has published the record. Test domains have, except for the names that never do. */
  readonly isSetUp: boolean;
}

/** What monitored domains of a mode depend on. Those of test keys have a fixed DNS and no network. */
export interface DomainPlatform {
  /** Where reports are sent, in lower-case A-labels; null when the service receives none. */
  readonly reportHost: string | null;
  /** The address of the mailbox that all reports are sent to; null where each domain has its own at the report host. */
  readonly mailbox: string | null;
  /** The host that receives mail for the report host; null while the HELO name is not a full host name. */
  readonly mailHost: string | null;
  resolverFor(domain: TestDomain): DnsResolver;
}

export type DomainPlatforms = Readonly<Record<KeyMode, DomainPlatform>>;

export interface DomainPlatformOptions extends Pick<DomainPlatform, "reportHost" | "mailHost"> {
  /** A resolver without a cache, so that a record that was just published is seen. */
  readonly resolver: DnsResolver;
  /** The address of the mailbox that is fetched by IMAP, used without a report host. */
  readonly mailbox?: string | null;
}

/** The address that receivers send the reports about a domain to; null when the service receives none. */
export const reportingAddressOf = (
  { reportHost, mailbox }: Pick<DomainPlatform, "reportHost" | "mailbox">,
  token: string,
): string | null => mailbox ?? (reportHost === null ? null : `${token}@${reportHost}`);

const domainPart = (address: string) => address.slice(address.lastIndexOf("@") + 1);

const table = z
  .strictObject({
    report_host: z.string(),
    published: z.record(z.string(), z.array(z.string())),
    never_set_up: z.array(z.string()),
  })
  .parse(fixture);

/** Test domains receive no reports, so their report host is fictitious where the service has none. */
export const createDomainPlatforms = (options: DomainPlatformOptions): DomainPlatforms => {
  const { resolver, mailHost } = options;
  const mailbox = options.reportHost === null ? (options.mailbox ?? null) : null;
  const reportHost = mailbox === null ? options.reportHost : domainPart(mailbox);
  const testHost = options.reportHost ?? table.report_host;
  return {
    live: { reportHost, mailbox, mailHost, resolverFor: () => resolver },
    test: { reportHost: testHost, mailbox: null, mailHost: testHost, resolverFor: createTestResolver },
  };
};

/** A resolver with the DNS of a test domain (contract §3): the same reply every time, without any network. */
export const createTestResolver = (test: TestDomain): DnsResolver => {
  const { domain, reportHost } = test;
  const authorisation = authorisationName(domain, reportHost);
  const zone = new Map<string, readonly string[]>([[recordHost(domain), textsOf(test)]]);
  if (authorisation.ok) {
    const records = serviceRecords(reportHost, reportHost);
    zone.set(
      authorisation.value,
      records.flatMap(({ type, value }) => (type === "TXT" ? [value] : [])),
    );
  }
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      const texts = type === "TXT" ? (zone.get(name) ?? []) : [];
      return {
        ...emptyResponse(name, type, texts.length > 0 ? "response" : "nxdomain"),
        // Only TXT queries return records, and these are strings.
        records: texts as ReadonlyArray<DnsRecordData[T]>,
      };
    },
  };
};

const textsOf = ({ domain, ours, isSetUp }: TestDomain): readonly string[] => {
  const texts = table.published[domain] ?? [];
  if (!isSetUp || table.never_set_up.includes(domain)) return texts;
  const merged = mergeRua({ domain, published: { kind: "texts", texts }, ours, inherited: null });
  return merged.ok && merged.value.value !== null ? [merged.value.value] : texts;
};

/** Names that never resolve on the public internet: RFC 6761, 6762, 7686, 8375, 9476, and common private names. */
const SPECIAL_ENDINGS = ["localhost", "local", "invalid", "test", "onion", "alt", "internal", "lan", "arpa"];
/** For documentation (RFC 6761 §6.5); used with test keys. */
const EXAMPLE_ENDING = "example";

/**
 * Reads the domain that a user wants to monitor: lower-case A-labels, below a public suffix, without a final dot. The error is a
 * sentence. Names under `.example` are for test keys only.
 */
export const parseMonitoredDomain = (text: string, mode: KeyMode): Result<string, string> => {
  const trimmed = text.trim();
  if (trimmed === "") return err("Must be a domain, such as example.com.");
  const problem = findOtherForm(trimmed);
  if (problem !== null) return err(problem);
  return readDomain(trimmed.replace(/(?<=[^.])\.$/, ""), mode);
};

/** Recognizes texts that are not a domain, and says what to write instead. */
const findOtherForm = (text: string): string | null => {
  if (text.includes("://")) return "Give the domain only, without http:// and path.";
  if (isIP(text) !== 0 || /^\[.*\]$/.test(text))
    return "This is an IP address; DMARC is about domains. Give the domain.";
  if (text.includes("@")) return "This is an email address: give the domain only, the part after the @.";
  if (text.includes("/")) return "Give the domain only, without a path.";
  if (text.includes(":")) return "Give the domain only, without a port.";
  const underscored = /^(?:[^.]+\._report\.)?_dmarc\.(.+)$/i.exec(text)?.[1];
  if (underscored !== undefined) return `Give the domain that the record is about: ${underscored}.`.replace("..", ".");
  if (text.includes("_")) return "Give the domain that mail is sent from; such names have no underscore.";
  if (text.startsWith("*.")) return "Give the domain only: its record applies to all names below it.";
  return null;
};

const readDomain = (text: string, mode: KeyMode): Result<string, string> => {
  const parsed = parseDomain(text);
  if (!parsed.ok) return err(describeNoDomain(parsed.error));
  const { ascii, unicode } = parsed.value;
  if (!ascii.includes(".")) return err(`"${unicode}" is a single label, no domain on the public internet.`);
  const isBelow = (ending: string) => ascii.endsWith(`.${ending}`);
  const special = SPECIAL_ENDINGS.find(isBelow);
  if (special !== undefined) return err(`Names under .${special} are not on the public internet.`);
  if (isBelow(EXAMPLE_ENDING)) {
    return mode === "test" ? ok(ascii) : err("Names under .example are accepted with test keys only.");
  }
  if (isPublicSuffix(ascii)) return err(`"${unicode}" is a public suffix, under which others register.`);
  return ok(ascii);
};
