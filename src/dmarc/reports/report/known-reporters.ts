import { z } from "zod";
import table from "../../../../fixtures/dmarc/reporters.json" with { type: "json" };

const entrySchema = z.strictObject({
  /** Unique; in lower case. */
  name: z.string().regex(/^[a-z0-9][a-z0-9 .&-]*$/),
  /** Hosts, with all names below them, in which nobody else has an address. */
  hosts: z.array(z.string()),
  /** Domains in which anybody can have a mailbox: only addresses that providers reserve are the reporter's. */
  public_hosts: z.array(z.string()),
});

/** Local parts that a mailbox provider gives to nobody (RFC 2142 §4 and usual names of report senders). */
const RESERVED: ReadonlySet<string> = new Set([
  ...["postmaster", "abuse", "mailer-daemon", "noreply", "no-reply", "donotreply"],
  ...[
    "dmarc",
    "dmarc-noreply",
    "dmarc-reports",
    "dmarc_reports",
    "noreply-dmarc",
    "no-reply-dmarc",
    "noreply-dmarc-support",
  ],
]);

const parseTable = () => {
  const entries = z.array(entrySchema).parse(table);
  return {
    hosts: new Map(entries.flatMap(({ name, hosts }) => hosts.map((host) => [host, name] as const))),
    publicHosts: new Map(entries.flatMap((entry) => entry.public_hosts.map((host) => [host, entry.name] as const))),
  };
};

let read: ReturnType<typeof parseTable> | null = null;

/** The table, read once. Throws if it breaks the schema. */
const readTable = (): ReturnType<typeof parseTable> => {
  read ??= parseTable();
  return read;
};

/** The sender of an authenticated report mail. */
export interface ReportSender {
  /** The header_from domain, in lower-case A-labels. */
  readonly domain: string;
  /** The local part of the address in From, in lower case; null when it is not known. */
  readonly localPart: string | null;
}

/**
 * The mailbox provider or report sender of `fixtures/dmarc/reporters.json` whose address is in From; null for any other. A mailbox
 * that anybody can have at a provider is not the provider.
 */
export const knownReporterOf = ({ domain, localPart }: ReportSender): string | null => {
  const { hosts, publicHosts } = readTable();
  const labels = domain.split(".");
  for (let at = 0; at < labels.length; at += 1) {
    const name = hosts.get(labels.slice(at).join("."));
    if (name !== undefined) return name;
  }
  if (localPart === null || !RESERVED.has(localPart)) return null;
  return publicHosts.get(domain) ?? null;
};
