import type { DmarcOverview } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import type { SourceSearch } from "../../dmarc/insight/queries/source-search.ts";
import type { TargetTable } from "../../blocklist/target-table.ts";
import type { History } from "../../verify/history.ts";
import type { Caller } from "../../foundation/http/guard.ts";
import type { Viewer } from "../visit.ts";
import { listTitle } from "../../bulk/attention.ts";
import type { JobQueries } from "../../bulk/job-queries.ts";
import { wordsOfReason } from "../components/verification.tsx";

/** Each part of the product is asked for this many. */
const PER_GROUP = 5;

export interface SearchUseCases {
  readonly history: Pick<History, "beginning">;
  readonly queries: Pick<JobQueries, "search">;
  readonly overview: Pick<DmarcOverview, "list">;
  readonly sources: Pick<SourceSearch, "find">;
  readonly table: Pick<TargetTable, "page">;
}

/** Something that was found. */
export interface Found {
  readonly title: string;
  /** A path without the prefix of test mode. */
  readonly path: string;
  /** What else there is to say; null for nothing. */
  readonly note: string | null;
}

export interface FoundGroup {
  readonly title: string;
  readonly found: readonly Found[];
  /** A page that shows more of the same; null where everything is in the group. */
  readonly more: string | null;
}

/** Pages and what is on them, in words that people may look for. */
const PAGES: ReadonlyArray<readonly [title: string, path: string, words: string]> = [
  ["Home", "/", "overview needs attention"],
  ["Verify an address", "/verify", "check history results"],
  ["Lists", "/lists", "new list bulk csv excel upload file"],
  ["Domains (DMARC)", "/dmarc", "spf dkim aligned report"],
  ["Enroll a domain", "/dmarc/new", "add a domain dmarc"],
  ["Report mail", "/dmarc/intake", "upload report xml aggregate quarantined dmarc"],
  ["Blocklist targets", "/blocklists", "dnsbl blacklist listed ip range"],
  ["Add targets", "/blocklists/new", "dnsbl blacklist blocklist ip range domain monitor"],
  ["Health of the blocklists", "/blocklists/lists", "dnsbl blacklist spamhaus usable"],
  ["Usage", "/usage", "credits invoice month chart ledger"],
  ["Webhooks", "/webhooks", "events deliveries slack teams discord telegram ntfy pagerduty opsgenie"],
  ["Settings", "/settings", "all settings"],
  ["API keys", "/settings/keys", "token secret scope rotate"],
  ["Notifications", "/settings/notifications", "alert mail recipients webhook slack default"],
  ["Suppression list", "/settings/suppressions", "suppressed never verify block"],
  ["Account", "/settings/account", "plan retention credits limits"],
  ["Audit log", "/settings/audit", "who changed what"],
  ["Users", "/settings/users", "colleague invite role viewer owner"],
  ["Profile", "/settings/profile", "password time zone two-factor code session sign-in"],
  ["Sending identity", "/settings/sender", "helo reverse dns doctor port 25 machine"],
  ["Service", "/settings/service", "health version backup queue disk log"],
  ["First steps", "/welcome", "set up start"],
];

/** Finds what the user may see by a text. */
export class Search {
  constructor(private readonly deps: SearchUseCases) {}

  /** Groups with results, pages first. Each part reads a limited number of rows. */
  async find({ caller }: Viewer, text: string, mayOpen: (path: string) => boolean): Promise<readonly FoundGroup[]> {
    const sought = encodeURIComponent(text);
    const groups: readonly FoundGroup[] = [
      { title: "Pages", found: pagesOf(text).filter(({ path }) => mayOpen(path)), more: null },
      { title: "Addresses", found: this.#addresses(caller, text), more: `/verify?q=${sought}` },
      { title: "Lists", found: await this.#lists(caller, text), more: `/lists?q=${sought}` },
      { title: "Domains", found: this.#domains(caller, text), more: `/dmarc?text=${sought}` },
      { title: "Senders in DMARC reports", found: await this.#senders(caller, text), more: null },
      { title: "Blocklist targets", found: await this.#targets(caller, text), more: `/blocklists?q=${sought}` },
    ];
    return groups.filter(({ found }) => found.length > 0);
  }

  #addresses(caller: Caller, text: string): readonly Found[] {
    return this.deps.history.beginning(caller, text, PER_GROUP).map(({ id, normalizedEmail, subStatus }) => {
      const note = subStatus === null ? "being verified" : wordsOfReason(subStatus).label;
      return { title: normalizedEmail, path: `/verify/${id}`, note };
    });
  }

  async #lists(caller: Caller, text: string): Promise<readonly Found[]> {
    const { rows } = await this.deps.queries.search(caller, { text }, { before: null, limit: PER_GROUP });
    return rows.map(({ id, name }) => ({ title: listTitle(name), path: `/lists/${id}`, note: null }));
  }

  #domains(caller: Caller, text: string): readonly Found[] {
    const query = { status: null, text, tag: null, order: "name", limit: PER_GROUP, offset: 0 } as const;
    const { domains } = this.deps.overview.list(caller, query);
    return domains.map(({ row }) => ({ title: row.domain, path: `/dmarc/${row.id}`, note: null }));
  }

  async #senders(caller: Caller, text: string): Promise<readonly Found[]> {
    const domains = await this.deps.sources.find(caller, text, PER_GROUP);
    const note = `senders with “${text}”`;
    return domains.map(({ id, domain }) => ({
      title: domain,
      path: `/dmarc/${id}/sources?text=${encodeURIComponent(text)}`,
      note,
    }));
  }

  async #targets(caller: Caller, text: string): Promise<readonly Found[]> {
    const { targets } = await this.deps.table.page(caller, { text, page: 1, perPage: PER_GROUP });
    return targets.map(({ id, value, label }) => ({ title: value, path: `/blocklists/${id}`, note: label }));
  }
}

const pagesOf = (text: string): readonly Found[] => {
  const wanted = text.toLowerCase();
  const inTitle = PAGES.filter(([title]) => title.toLowerCase().includes(wanted));
  const byWord = PAGES.filter(([title, , words]) => !title.toLowerCase().includes(wanted) && words.includes(wanted));
  return [...inTitle, ...byWord].slice(0, PER_GROUP).map(([title, path]) => ({ title, path, note: null }));
};
