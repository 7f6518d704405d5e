import type { Caller } from "../../../foundation/http/guard.ts";
import type { DmarcAlertRow, DmarcAlertStore } from "../../records/domains/alert-store.ts";
import type { DomainPage, DomainRow } from "../../records/domains/domain-store.ts";

/** Lists the alerts of the caller's domains. Throws `not_found` for a domain of another account. */
export class DomainAlerts {
  readonly #store: Pick<DmarcAlertStore, "listAlerts">;
  readonly #findDomain: (caller: Caller, id: string) => DomainRow;

  constructor(store: Pick<DmarcAlertStore, "listAlerts">, findDomain: (caller: Caller, id: string) => DomainRow) {
    this.#store = store;
    this.#findDomain = findDomain;
  }

  /** Newest first. */
  list(caller: Caller, id: string): (page: DomainPage) => readonly DmarcAlertRow[] {
    const { number } = this.#findDomain(caller, id);
    return (page) => this.#store.listAlerts(number, page);
  }
}
