import { parseAddress } from "./address.ts";
import type { AddressProblem } from "./address-problem.ts";

/** What `postwarden inspect address` prints for one text. The field names are part of the interface. */
export interface AddressInspection {
  /** The text as given, white space included. */
  readonly input: string;
  readonly valid: boolean;
  /** Null when the text is no address. */
  readonly normalized_email: string | null;
  /** Null when the text is an address. */
  readonly reason: AddressProblem | null;
}

/** Describes how Postwarden reads a text as an address. Never throws, and queries no server. */
export const inspectAddress = (input: string): AddressInspection => {
  const address = parseAddress(input);
  return address.ok
    ? { input, valid: true, normalized_email: address.value.normalized, reason: null }
    : { input, valid: false, normalized_email: null, reason: address.error };
};
