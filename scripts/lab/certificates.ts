import { join } from "node:path";
import { SUFFIX } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";

/** The least that `openssl ca` wants to know; it alone lets both dates be chosen. */
const configuration = (directory: string): string => `[ca]
default_ca = lab
[lab]
database = ${directory}/ca.index
serial = ${directory}/ca.serial
new_certs_dir = ${directory}
default_md = sha256
policy = names
[names]
commonName = supplied
`;

/**
 * Writes `tls.key`, and two certificates of it that nobody vouches for: `tls.crt` is of today, `expired.crt` ended in
 * 2020.
 */
export const makeCertificates = async (supervisor: Supervisor, directory: string): Promise<void> => {
  const path = (name: string): string => join(directory, name);
  const subject = ["-subj", `/CN=mx.${SUFFIX}`];
  await supervisor.run([
    ...["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject],
    ...["-keyout", path("tls.key"), "-out", path("tls.crt")],
  ]);
  await Bun.write(path("ca.cnf"), configuration(directory));
  await Bun.write(path("ca.index"), "");
  await Bun.write(path("ca.serial"), "01\n");
  await supervisor.run(["openssl", "req", "-new", "-key", path("tls.key"), ...subject, "-out", path("tls.csr")]);
  await supervisor.run([
    ...["openssl", "ca", "-batch", "-notext", "-config", path("ca.cnf"), "-selfsign", "-keyfile", path("tls.key")],
    ...["-in", path("tls.csr"), "-out", path("expired.crt")],
    ...["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"],
  ]);
};
