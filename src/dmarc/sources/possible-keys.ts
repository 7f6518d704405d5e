import { readSourceKey } from "../ingest/source-key.ts";
import { findService } from "../services/services.ts";
import { ipNetworkOf } from "../addresses/ip-network.ts";
import { organisationOf } from "./source-identity.ts";
import { PENDING_KEY, UNAUTHENTICATED_KEY } from "./unauthenticated-mail.ts";
import { UNRELATED_SUFFIX } from "./source-keys.ts";

/** Keys that a source may have whatever is known of it. */
const ALWAYS = ["own", "other", UNAUTHENTICATED_KEY, PENDING_KEY];

/**
 * All the keys under which a stored source may have been classified: those it may be shown under, and those of before sources were
 * identified by service. Which of them it is shown under depends on the other sources of the domain.
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
    ...(address === null ? [] : [`net:${ipNetworkOf(address.ip)}`]),
    key,
  ];
};
