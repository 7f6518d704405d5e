import { expect, test } from "bun:test";
import { describeListenFailure } from "./http-listener.ts";

const failure = (code: string) => Object.assign(new Error("as the platform says it"), { code });

test.each([
  ["EADDRINUSE", "127.0.0.1", "Port 80 of 127.0.0.1 is in use by another program. Set POSTWARDEN_PORT to another one."],
  ["EADDRINUSE", "foo", 'POSTWARDEN_HOST: "foo" is not an address of this machine, or port 80 is in use.'],
  ["EADDRNOTAVAIL", "203.0.113.77", 'POSTWARDEN_HOST: "203.0.113.77" is not an address of this machine.'],
  ["EACCES", "::", "Permission denied for port 80: ports below 1024 need root or the capability CAP_NET_BIND_SERVICE."],
  ["EMFILE", "::", "Cannot listen on :::80: as the platform says it"],
])("%s of %s is a sentence that names what to change", (code, host, sentence) => {
  expect(describeListenFailure(failure(code), { host, port: 80 })).toBe(sentence);
});
