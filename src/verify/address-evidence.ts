import { type Address, normalizeLoosely, parseAddress } from "../foundation/mail/address.ts";
import { readAddressCell } from "../foundation/mail/address-in-cell.ts";
import { type AddressProblem, describeProblem } from "../foundation/mail/address-problem.ts";
import type { Evidence } from "./evidence.ts";
import { isDisposable, isRoleAccount } from "./lists.ts";
import { suggestAddress } from "./suggestion.ts";

/** What lists say about a well-formed address. `problem` is set only with test keys, whose trigger may be a bad address. */
export type AddressClassifier = (
  address: Address,
) => Pick<Evidence["address"], "problem" | "role_account" | "disposable">;

/** Classifies an address by the lists of role accounts and disposable domains. */
export const classifyAddress: AddressClassifier = ({ localPart, domain, literal }) => ({
  problem: null,
  role_account: isRoleAccount(localPart),
  disposable: literal === null ? isDisposable(domain) : null,
});

const NO_NETWORK_EVIDENCE = {
  ...{ domain: null, toxic: null, dnsbl: null, random_recipient: null, conclusion: null },
  ...{ attempts: [], retries: [] },
};

const invalidAddress = (submitted: string, error: AddressProblem, suggestion: string | null): Evidence => {
  const [normalized_email, problem] = [normalizeLoosely(submitted), describeProblem(error)];
  const unlisted = { suggestion, role_account: null, disposable: null };
  return { address: { submitted, normalized_email, read_as: null, problem, ...unlisted }, ...NO_NETWORK_EVIDENCE };
};

const validAddress = (
  submitted: string,
  address: Address,
  { readAs, classify }: { readonly readAs: string | null; readonly classify: AddressClassifier },
): Evidence => ({
  address: {
    submitted,
    normalized_email: address.normalized,
    read_as: readAs,
    suggestion: suggestAddress(address),
    ...classify(address),
  },
  ...NO_NETWORK_EVIDENCE,
});

/**
 * The evidence that needs no network: syntax and lists. Only white space may surround the address; what else can be read
 * as one (`Anna <anna@example.com>`) is suggested.
 */
export const beginEvidence = (submitted: string, classify = classifyAddress): Evidence => {
  const parsed = parseAddress(submitted);
  if (parsed.ok) return validAddress(submitted, parsed.value, { readAs: null, classify });
  const read = readAddressCell(submitted);
  return invalidAddress(submitted, parsed.error, read.ok ? read.value.text : null);
};

/** `beginEvidence` for a cell of a list, from which the address is extracted. */
export const beginCellEvidence = (submitted: string, classify = classifyAddress): Evidence => {
  const read = readAddressCell(submitted);
  if (!read.ok) return invalidAddress(submitted, read.error, null);
  const { text, address } = read.value;
  return validAddress(submitted, address, { readAs: text === submitted.trim() ? null : text, classify });
};
