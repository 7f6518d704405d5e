import { networkOf } from "../foundation/base/cidr.ts";
import { parseAsName, parseOrigin } from "../foundation/net/asn-lookup.ts";
import { openGeoipDatabase } from "../foundation/net/geoip-files.ts";
import { type FuzzTarget, must } from "./fuzz-target.ts";
import { writeMmdb } from "./mmdb-writer.ts";

const utf8 = new TextEncoder();
const ADDRESSES = ["192.0.2.10", "2001:db8::1"];
const NAME_CHARACTERS_MAX = 120;

/** The lines of the input are the TXT records of a response. */
const checkAsnText = (input: Uint8Array): void => {
  const records = new TextDecoder().decode(input).split("\n");
  for (const ip of ADDRESSES) {
    const origin = parseOrigin(ip, records);
    if (origin === null) continue;
    must(origin.asn >= 1 && origin.asn < 2 ** 32, "no AS number");
    must(origin.country === null || /^[A-Z]{2}$/.test(origin.country), "no country code");
    must(origin.prefix === networkOf(ip, Number(origin.prefix.split("/")[1])), "the prefix does not hold the address");
  }
  const name = parseAsName(64_500, records)?.name ?? "";
  must([...name].length <= NAME_CHARACTERS_MAX && !/\p{Cc}/u.test(name), "no name on one line");
};

/** Damage is refused when the file is opened, or an `Error` when it is met. */
const checkGeoip = (input: Uint8Array): void => {
  const opened = openGeoipDatabase(Buffer.from(input));
  must(opened.ok || opened.error !== "", "refused without a word");
  if (!opened.ok) return;
  for (const ip of ADDRESSES) {
    try {
      opened.value.find(ip);
    } catch (error) {
      must(error instanceof Error, "something else than an Error was thrown");
    }
  }
};

const AS = { autonomous_system_number: 64_500, autonomous_system_organization: "Example" };

/** The parsers of network data of an address. */
export const NETWORK_FUZZ_TARGETS: readonly FuzzTarget[] = [
  {
    name: "asn-text",
    seeds: [
      "64500 | 192.0.2.0/24 | US | arin | 2000-01-01",
      '"64511 64500 | 2001:db8::/32 | NA | afrinic | "\n64500 | 2001:db8:0:0::/64 | EU | ripencc |',
      "64500 | US | arin | 2000-03-30 | EXAMPLE-02 - Example, Inc., US",
    ].map((text) => utf8.encode(text)),
    check: checkAsnText,
  },
  {
    name: "geoip",
    seeds: ([24, 28, 32] as const).map((recordBits) =>
      writeMmdb({ "192.0.2.0/24": AS, "2001:db8::/32": { country: { iso_code: "US" } } }, { recordBits }),
    ),
    check: checkGeoip,
  },
];
