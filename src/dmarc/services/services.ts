import table from "../../../fixtures/dmarc/services.json" with { type: "json" };

export const SERVICE_KINDS = ["mailbox provider", "bulk sender", "business", "gateway", "hosting"] as const;
export type ServiceKind = (typeof SERVICE_KINDS)[number];

/** Somebody who sends mail for others. */
export interface Service {
  readonly name: string;
  readonly kind: ServiceKind;
}

interface Entry extends Service {
  /** The domains that it authenticates with, or that the reverse names of its hosts lie in. */
  readonly domains: readonly string[];
}

// The words of `kind` are checked against SERVICE_KINDS by a test.
const ENTRIES = table as unknown as readonly Entry[];

const index = (): ReadonlyMap<string, Service> =>
  new Map(ENTRIES.flatMap(({ domains, name, kind }) => domains.map((domain) => [domain, { name, kind }])));

let byDomain: ReadonlyMap<string, Service> | null = null;

/** The service that a name belongs to: an SPF or DKIM domain or a reverse name, in lower case; the longest match counts. */
export const findService = (name: string): Service | null => {
  byDomain ??= index();
  for (let rest = name; ;) {
    const found = byDomain.get(rest);
    if (found !== undefined) return found;
    const dot = rest.indexOf(".");
    if (dot === -1) return null;
    rest = rest.slice(dot + 1);
  }
};
