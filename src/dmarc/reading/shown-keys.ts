import { readSourceKey } from "../ingest/source-key.ts";
import { findService } from "../services/services.ts";
import { networkOf } from "./network.ts";
import { organisationOf } from "./source-identity.ts";
import { PENDING, UNAUTHENTICATED_MAIL } from "./source-pool.ts";
import { OTHERS } from "./source-scene.ts";

/** Keys that a source may have whatever is known of it. */
const ALWAYS = ["own", "other", UNAUTHENTICATED_MAIL, PENDING];

/**
 * All the keys under which a stored source may have been classified: those it may be shown under, and those of before sources were
 * identified by service. Which of them it is shown under depends on the other sources of the domain.
 */
export const shownKeysOf = (
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
      return [identity, `${identity}${OTHERS}`];
    }),
    ...(signer === null ? [] : [`dkim:${signer}`]),
    ...(envelope === null ? [] : [`spf:${envelope}`]),
    ...(reverse === null ? [] : [`ptr:${organisationOf(reverse)}`]),
    ...(address === null ? [] : [`net:${networkOf(address.ip)}`]),
    key,
  ];
};
