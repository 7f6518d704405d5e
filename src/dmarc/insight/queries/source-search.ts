import { pagesOf } from "../../../foundation/base/in-steps.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { statements } from "../../../foundation/db/statements.ts";
import type { DomainOwner, DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { knownServices } from "../../records/services/services.ts";

/** Domains that are looked at, the newest first, and sources of each. */
const DOMAINS_MAX = 200;
const SOURCES_MAX = 25_000;
/** A page of domains: some milliseconds, as long as none of them has many sources. */
const DOMAINS_AT_ONCE = 4;

/** Finds the domains in whose reports a sender occurs. */
export class SourceSearch {
  readonly #sql;

  constructor(
    db: Pick<Db, "sqlite">,
    private readonly domains: Pick<DomainStore, "list">,
  ) {
    this.#sql = statements({
      contains: () =>
        db.sqlite.prepare<{ found: 1 }, [number, number, string]>(
          `SELECT 1 found FROM (SELECT key FROM dmarc_sources WHERE domain = ? LIMIT ?) s
        JOIN json_each(?) t ON instr(s.key, t.value) > 0 LIMIT 1`,
        ),
    });
  }

  /** `text`: part of an address or of an authenticated domain, or of the name of a known service; upper and lower case are the same. */
  async find(owner: DomainOwner, text: string, limit: number): Promise<readonly DomainRow[]> {
    const texts = JSON.stringify(textsOf(text.toLowerCase()));
    const found: DomainRow[] = [];
    const pages = pagesOf<DomainRow, string | null>(
      {
        start: null,
        read: (before) => this.domains.list(owner, {}, { before, limit: DOMAINS_AT_ONCE }),
        positionOf: ({ id }) => id,
      },
      { stepsMax: DOMAINS_MAX / DOMAINS_AT_ONCE, isStopping: () => found.length >= limit },
    );
    for await (const rows of pages)
      found.push(...rows.filter(({ number }) => this.#sql.contains.get(number, SOURCES_MAX, texts) !== null));
    return found.slice(0, limit);
  }
}

/** The text, and the domains of the services that are called so. */
const textsOf = (text: string): readonly string[] => [
  text,
  ...knownServices()
    .filter(({ name }) => name.toLowerCase().includes(text))
    .flatMap(({ domains }) => domains),
];
