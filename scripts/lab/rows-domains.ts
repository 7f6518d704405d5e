import { WRONG_DNS } from "./hosts.ts";
import { ALL_RETRIES_S, DNS_RETRIES_S, DNS_TIMEOUT_S, PROMPT_S, REPLY_TIMEOUT_S, within } from "./rows.ts";
import type { Theme } from "./rows.ts";

const EXISTS = ["deliverable", "mailbox_exists"] as const;
const UNKNOWN = ["undeliverable", "mailbox_not_found"] as const;
const UNROUTABLE = ["undeliverable", "unroutable_mx"] as const;
const NO_DNS = ["risky", "dns_error"] as const;
const INVALID = ["undeliverable", "invalid_syntax"] as const;

/** Thirty connections one after the other, each of which waits for its turn on a busy machine. */
const THIRTY_HOSTS_S = 14;

export const SEVERAL_HOSTS: Theme = {
  name: "several mail hosts",
  spans: [
    within(
      PROMPT_S,
      ["first host refuses connections, exists", ...EXISTS, "alice@failover"],
      ["first host refuses connections, unknown", ...UNKNOWN, "nobody@failover"],
      ["first host says 421, exists", ...EXISTS, "alice@failoverbusy"],
      ["first host hangs up, exists", ...EXISTS, "alice@failovershuts"],
      ["three equal hosts, two of them dead, exists", ...EXISTS, "alice@equals"],
      ["three equal hosts, two of them dead, unknown", ...UNKNOWN, "nobody@equals"],
      ["first address of the host is dead, exists", ...EXISTS, "alice@twoaddresses"],
      ["accept-all secondary, exists", ...EXISTS, "alice@secondary"],
      ["accept-all secondary, unknown", ...UNKNOWN, "nobody@secondary"],
      ["accept-all secondary, primary is dead", "risky", "catch_all", "alice@secondarydead"],
      ["all hosts are dead", "risky", "smtp_unreachable", "alice@dead"],
    ),
    within(
      REPLY_TIMEOUT_S,
      ["first host is silent, exists", ...EXISTS, "alice@failoversilent"],
      ["first host is silent, unknown", ...UNKNOWN, "nobody@failoversilent"],
    ),
    within(
      THIRTY_HOSTS_S,
      ["thirty hosts, only the last lives, exists", ...EXISTS, "alice@thirty"],
      ["thirty hosts, only the last lives, unknown", ...UNKNOWN, "nobody@thirty"],
    ),
    within(2 * REPLY_TIMEOUT_S, ["all hosts are silent", "risky", "smtp_timeout", "alice@mute"]),
    within(ALL_RETRIES_S, [
      "accept-all secondary, primary defers",
      "risky",
      "smtp_temporary_error",
      "alice@secondarydefers",
    ]),
  ],
};

export const DNS_SHAPES: Theme = {
  name: "DNS",
  spans: [
    within(
      PROMPT_S,
      ["null MX", "undeliverable", "null_mx", "alice@nullmx"],
      ["implicit MX, exists", ...EXISTS, "alice@implicit"],
      ["implicit MX, unknown", ...UNKNOWN, "nobody@implicit"],
      ["no MX, no address", "undeliverable", "no_mail_server", "alice@txtonly"],
      ["no such domain", "undeliverable", "domain_not_found", "alice@nosuchdomain"],
      ["MX at a private address", ...UNROUTABLE, "alice@privatemx"],
      ["MX at 127.0.0.1", ...UNROUTABLE, "alice@loopbackmx"],
      ["MX at a link-local address", ...UNROUTABLE, "alice@linklocal"],
      ["MX at loopback in IPv6 dress (mapped, NAT64)", ...UNROUTABLE, "alice@mapped"],
      ["MX host does not exist", ...UNROUTABLE, "alice@nohost"],
      ["MX host has no address", ...UNROUTABLE, "alice@addressless"],
      ["first MX private, second works", ...EXISTS, "alice@privatefirst"],
      ["first MX host does not exist, second works", ...EXISTS, "alice@firstnohost"],
      ["MX is a CNAME, exists", ...EXISTS, "alice@mxcname"],
      ["domain is a CNAME, exists", ...EXISTS, "alice@domaincname"],
      ["domain is a chain of four CNAMEs, exists", ...EXISTS, "alice@cnamechain"],
      ["domain is a chain of four CNAMEs, unknown", ...UNKNOWN, "nobody@cnamechain"],
      ["domain below a DNAME, exists", ...EXISTS, "alice@mail.renamed"],
      ["MX by wildcard, exists", ...EXISTS, "alice@any.wild"],
      ["MX by wildcard, unknown", ...UNKNOWN, "nobody@any.wild"],
      ["answer is truncated, exists", ...EXISTS, "alice@truncated"],
      ["answer is truncated, unknown", ...UNKNOWN, "nobody@truncated"],
      ["long TXT beside the MX, exists", ...EXISTS, "alice@longtxt"],
    ),
    within(
      DNS_RETRIES_S,
      ["SERVFAIL", ...NO_DNS, "alice@servfail"],
      ["silent DNS", ...NO_DNS, "alice@silentdns"],
      ["DNS REFUSED", ...NO_DNS, "alice@refused"],
      ["MX host ends in SERVFAIL", ...NO_DNS, "alice@hostservfail"],
      ["one MX host ends in SERVFAIL, the other is private", ...NO_DNS, "alice@servfailandprivate"],
    ),
    within(
      DNS_TIMEOUT_S,
      ["CNAMEs go in a circle", ...NO_DNS, "alice@cnameloop", "alice@cnameself"],
      ["MX host's CNAMEs go in a circle", ...NO_DNS, "alice@mxloop"],
      ["DNS is silent about the last MX host, first works", ...EXISTS, "alice@lastsilent"],
      ["first MX host ends in SERVFAIL, second works", ...EXISTS, "alice@firstservfail"],
    ),
  ],
};

/** What name servers must not be believed; two addresses of each domain, the second is answered out of the cache. */
const WRONG_ANSWERS = within(
  DNS_TIMEOUT_S,
  ["every answer is empty, no SOA", ...NO_DNS, "alice@emptydns", "nobody@emptydns"],
  ["implicit MX, every answer is empty, no SOA", ...NO_DNS, "alice@implicit.emptydns"],
  ["the MX host's answers are empty, no SOA", ...NO_DNS, "alice@emptyhost", "nobody@emptyhost"],
  ["no such domain, no SOA", "undeliverable", "domain_not_found", "alice@gone.bareno", "nobody@gone.bareno"],
);

/** By the lab's own resolver, unbound, in front of them. */
export const WRONG_DNS_ROWS: Theme = {
  name: "wrong DNS answers",
  spans: [
    WRONG_ANSWERS,
    within(
      DNS_TIMEOUT_S,
      ["MX host does not exist, no SOA", ...UNROUTABLE, "alice@barehost"],
      ["45 MX, only the last is routable", ...NO_DNS, "alice@fortyfive", "nobody@fortyfive"],
      ["an address in place of the MX host", ...UNROUTABLE, "alice@addressasmx"],
      ["MX host at 0.0.0.0 and ::, as filters answer", ...NO_DNS, "alice@filtered"],
    ),
  ],
};

/** Without unbound. The command line alone is asked: the service has its own resolver. */
export const WRONG_DNS_DIRECT_ROWS: Theme = {
  name: "wrong DNS answers, asked directly",
  environment: { POSTWARDEN_DNS_SERVERS: `${WRONG_DNS.ip}:${WRONG_DNS.port}` },
  spans: [WRONG_ANSWERS, within(DNS_TIMEOUT_S, ["MX is empty once and then right, exists", ...EXISTS, "alice@exists"])],
};

/** Left out where the machine has no IPv6. */
export const IPV6_ROWS: Theme = {
  name: "IPv6",
  spans: [
    within(
      PROMPT_S,
      ["AAAA is dead, A works, exists", ...EXISTS, "alice@dualdead6"],
      ["A is dead, AAAA works, exists", ...EXISTS, "alice@dualdead4"],
      ["A is dead, AAAA works, unknown", ...UNKNOWN, "nobody@dualdead4"],
      ["only AAAA, exists", ...EXISTS, "alice@only6"],
      ["only AAAA, unknown", ...UNKNOWN, "nobody@only6"],
      ["implicit MX by AAAA, exists", ...EXISTS, "alice@implicit6"],
      ["both are dead", "risky", "smtp_unreachable", "alice@deadboth"],
    ),
  ],
};

export const SYNTAX: Theme = {
  name: "syntax",
  spans: [
    within(
      PROMPT_S,
      ["not an address", ...INVALID, "alice", "alice..b@exists", ".alice@exists", "alice@", "@exists"],
      ["not an address", ...INVALID, "a b@exists", "alice@exists@exists", "alice@-exists", "alice@exi sts"],
      ["local part of 65 octets", ...INVALID, `${"a".repeat(65)}@exists`],
    ),
  ],
};
