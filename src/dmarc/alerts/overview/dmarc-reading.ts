import { type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { QueryContext } from "../../insight/queries/domain-query.ts";
import { type DomainPageFacts, type DomainPageStores, readDomainPage } from "./domain-page.ts";
import { readSourcePage, type SourcePage, type SourcePageStores } from "./source-page.ts";

export interface DmarcReadingContext extends Pick<QueryContext, "db" | "clock" | "rollups" | "findDomain"> {
  readonly histories: DomainPageStores["domains"];
  readonly readHealth: SourcePageStores["readHealth"];
}

/** What the pages of a domain and of its sources show. Throws `not_found` for a domain of another account. */
export class DmarcReading {
  readonly #context: DmarcReadingContext;

  constructor(context: DmarcReadingContext) {
    this.#context = context;
  }

  /** The last days up to today (UTC). */
  range(days: number): DayRange {
    const toDay = dayOfTime(this.#context.clock.nowMs());
    return { fromDay: toDay - days + 1, toDay };
  }

  /** A domain over the last days. */
  domain(caller: Caller, id: string, days: number): DomainPageFacts & { readonly row: DomainRow } {
    const { db, rollups, histories, findDomain } = this.#context;
    return db.snapshot(() => {
      const row = findDomain(caller, id);
      return { row, ...readDomainPage({ rollups, domains: histories }, row, this.range(days)) };
    });
  }

  /** A source over the last days. Throws `not_found` for a key that no report names. */
  source(
    caller: Caller,
    id: string,
    { key, days }: { readonly key: string; readonly days: number },
  ): SourcePage & { readonly row: DomainRow } {
    const { db, rollups, readHealth, findDomain } = this.#context;
    return db.snapshot(() => {
      const row = findDomain(caller, id);
      const page = readSourcePage({ rollups, readHealth }, row, { key, range: this.range(days) });
      if (page === undefined) throw new AppError("not_found", { message: "No report names this source." });
      return { row, ...page };
    });
  }
}
