import { expect, test } from "bun:test";
import type { Channel } from "./smtp/outages.ts";
import { type EvidenceParts, evidenceWith, findingWith } from "../testing/evidence.ts";
import { unansweredChannel } from "./verdict.ts";

const unreachable = findingWith({ reading: "unreachable", reply: null, heard: false });

test.each<readonly [string, EvidenceParts, Channel | null]>([
  ["a mail host that is unreachable", { findings: [unreachable] }, "smtp"],
  ["a mail host that replied", {}, null],
  ["a domain whose mail hosts were not probed", { findings: [] }, null],
  [
    "a domain that ceased to exist between two attempts",
    { domain: { outcome: "nxdomain" }, findings: [unreachable] },
    null,
  ],
  ["an address without a domain", { domain: null, findings: [] }, null],
  ["DNS queries that could not be sent", { domain: { outcome: "local_failure" }, findings: [] }, "dns_sockets"],
  ["a domain whose DNS records are at fault", { domain: { outcome: "dns_error" }, findings: [] }, null],
  ["a broken egress", { findings: [findingWith({ reading: "internal", rule: "proxy_failed" })] }, "egress"],
  ["no egress of this IP version", { findings: [findingWith({ reading: "internal", rule: "no_egress" })] }, null],
])("the channel without a response: %s", (_name, parts, channel) => {
  expect(unansweredChannel(evidenceWith(parts))).toBe(channel);
});
