import { readFileSync } from "node:fs";
import { err, type Result, SettingsError, errorText } from "../../foundation/base/errors.ts";
import type { OnBehalfOf } from "../../foundation/base/on-behalf-of.ts";
import { organisationalDomain } from "../../foundation/mail/organisational-domain.ts";
import { resolverFor, type DnsResolver } from "../../foundation/net/dns.ts";
import type { Platform } from "../../foundation/net/platform.ts";
import { type Catalogue, applyKeys, applySwitches } from "./blocklist.ts";
import { type BudgetLedger, createDnsblPacing, type DnsblPacing, ListClient } from "./list-client.ts";
import { parseCatalogue } from "./catalogue.ts";
import { EMBEDDED_CATALOGUE } from "./embedded-catalogue.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import { ChangeConfirmer } from "./change-confirmer.ts";
import { DnsblHealth } from "./health.ts";
import { LivenessProber } from "./liveness.ts";
import { DnsblLookup } from "./lookup.ts";
import type { RegistrableDomain } from "./query-name.ts";

/** The operator's settings about the catalogue. */
export interface CatalogueSettings {
  readonly blocklistCataloguePath: string | null;
  readonly blocklistKeys: ReadonlyMap<string, string>;
  readonly blocklistsEnable: readonly string[];
  readonly blocklistsDisable: readonly string[];
}

const readCatalogueFile = (path: string): Result<Catalogue, readonly string[]> => {
  try {
    return parseCatalogue(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    return err([`${path} cannot be read: ${errorText(error)}.`]);
  }
};

/** The blocklist catalogue in force, with its keys. Throws `SettingsError` when the file or the keys are invalid. */
export const catalogueOf = (settings: CatalogueSettings): Catalogue => {
  const { blocklistCataloguePath: path, blocklistKeys, blocklistsEnable, blocklistsDisable } = settings;
  const read = path === null ? null : readCatalogueFile(path);
  if (read !== null && !read.ok)
    throw new SettingsError(read.error.map((problem) => `POSTWARDEN_BLOCKLIST_CATALOGUE: ${problem}`));
  const applied = applyKeys(read?.value ?? EMBEDDED_CATALOGUE, blocklistKeys);
  if (!applied.ok) throw new SettingsError(applied.error.map((problem) => `POSTWARDEN_BLOCKLIST_KEYS: ${problem}`));
  const switched = applySwitches(applied.value, { enable: blocklistsEnable, disable: blocklistsDisable });
  if (switched.ok) return switched.value;
  throw new SettingsError([
    ...switched.error.enable.map((problem) => `POSTWARDEN_BLOCKLISTS_ENABLE: ${problem}`),
    ...switched.error.disable.map((problem) => `POSTWARDEN_BLOCKLISTS_DISABLE: ${problem}`),
  ]);
};

/** Lookups within the budgets of the lists: for monitoring and the command line. Without a ledger, budgets begin anew. */
export const openDnsbl = ({ clock, random, resolver }: Platform, ledger?: BudgetLedger): Dnsbl =>
  createDnsbl({
    clock,
    random,
    resolver,
    registrableDomain: organisationalDomain,
    pacing: createDnsblPacing({ clock, ...(ledger === undefined ? {} : { ledger }) }),
  });

/** Responses of blocklists are shared by all accounts; at the DNS, their lookups count as one account. */
const BLOCKLISTS: OnBehalfOf = { account: "blocklists", priority: "realtime" };

/** The same for verdicts, which wait `waitMsMax` at most for their turn. */
export const openVerdictDnsbl = ({ clock, random, resolver }: Platform, waitMsMax: number): Dnsbl =>
  createDnsbl({
    clock,
    random,
    resolver: resolverFor(resolver, BLOCKLISTS),
    registrableDomain: organisationalDomain,
    pacing: createDnsblPacing({ clock, waitMsMax }),
  });

export interface Dnsbl {
  readonly lookup: DnsblLookup;
  readonly health: DnsblHealth;
}

/** Lookups and health over one resolver. They share budgets and what is known about the lists: create one per process. */
export const createDnsbl = (deps: {
  resolver: DnsResolver;
  clock: Clock;
  random: Random;
  registrableDomain: RegistrableDomain;
  /** Default: the published budgets. `noPacing` is for measurements and for your own lists. */
  pacing?: DnsblPacing;
}): Dnsbl => {
  const { resolver, clock, random, pacing = createDnsblPacing({ clock }) } = deps;
  const client = new ListClient(resolver, pacing);
  const prober = new LivenessProber(client, deps);
  const health = new DnsblHealth(clock, { client, random, prober });
  const confirmer = new ChangeConfirmer(deps, { client, health, prober });
  return { health, lookup: new DnsblLookup(deps, { client, health, confirmer }) };
};
