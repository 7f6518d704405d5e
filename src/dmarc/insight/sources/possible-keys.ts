import { readSourceKey } from "../../reports/ingest/source-key.ts";
import { findService } from "../../records/services/services.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import { organisationOf } from "./source-identity.ts";
import { PENDING_KEY, UNAUTHENTICATED_KEY } from "./unauthenticated-mail.ts";
import { UNAUTHENTICATED_SUFFIX, UNRELATED_SUFFIX } from "./source-keys.ts";

/** Keys that any source may have. */
const ALWAYS = ["own", "other", UNAUTHENTICATED_KEY, PENDING_KEY];

/**
 * All keys under which a user may have classified a stored source: those that it may be shown under, which depends on the other
 * sources of the domain, and those from before sources were identified by service.
 */
export const possibleKeysOf = (
  key: string,
  address: { readonly ip: string; readonly name: string | null; readonly isConfirmed: boolean } | null,
): readonly string[] => {
  const { signer, envelope, foreign } = readSourceKey(key);
  const reverse = address?.isConfirmed === true ? address.name : null;
  const names = [signer, envelope, foreign, reverse].filter((name) => name !== null);
  return [
    ...ALWAYS,
    ...names.flatMap((name) => {
      const service = findService(name);
      const identity = service === null ? `org:${organisationOf(name)}` : `service:${service.id}`;
      return [identity, `${identity}${UNRELATED_SUFFIX}`];
    }),
    ...(signer === null ? [] : [`dkim:${signer}`]),
    ...(envelope === null ? [] : [`spf:${envelope}`]),
    ...(reverse === null ? [] : [`ptr:${organisationOf(reverse)}`]),
    ...(address === null ? [] : networkKeys(address.ip)),
    key,
  ];
};

const networkKeys = (ip: string): readonly string[] => {
  const network = `net:${ipNetworkOf(ip)}`;
  return [network, `${network}${UNAUTHENTICATED_SUFFIX}`];
};
