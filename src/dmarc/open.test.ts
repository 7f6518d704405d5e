import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SettingsError } from "../foundation/base/errors.ts";
import { originQueryName } from "../foundation/net/asn-lookup.ts";
import { createApps } from "../testing/app.ts";
import { writeMmdb } from "../testing/mmdb-writer.ts";

const start = createApps();

describe("the user's GeoIP databases", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "postwarden-geoip-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const file = (): string => join(folder, "asn.mmdb");
  const startWith = (settings: Readonly<Record<string, string>>) => {
    const record = { autonomous_system_number: 64_500, autonomous_system_organization: "Example" };
    writeFileSync(file(), writeMmdb({ "8.8.8.0/24": record }));
    const app = start({
      settings,
      zone: { [originQueryName("8.8.4.4")]: { TXT: ["64501 | 8.8.4.0/24 | US | arin |"] } },
    });
    for (const ip of ["8.8.8.8", "8.8.4.4"])
      app.db.sqlite.run("INSERT INTO dmarc_reverse_names (ip, is_confirmed, due_at_ms) VALUES (?, 0, 0)", [ip]);
    const asns = () =>
      app.db.sqlite
        .query<{ asn: number | null }, []>("SELECT asn FROM dmarc_reverse_names ORDER BY rowid")
        .all()
        .map(({ asn }) => asn);
    const asked = () => app.resolver.queries.filter((question) => question.includes("cymru"));
    return Object.assign(app, { asns, asked });
  };

  test.each<[Readonly<Record<string, string>>, (number | null)[], string[]]>([
    [{ ASN_LOOKUP: "off" }, [null, null], []],
    [{ ASN_LOOKUP: "off", GEOIP_DB: "here" }, [64_500, null], []],
    [{ GEOIP_DB: "here" }, [64_500, 64_501], [`TXT ${originQueryName("8.8.4.4")}`, "TXT as64501.asn.cymru.com"]],
    [
      {},
      [null, 64_501],
      [`TXT ${originQueryName("8.8.8.8")}`, `TXT ${originQueryName("8.8.4.4")}`, "TXT as64501.asn.cymru.com"],
    ],
  ])("with %j", async (settings, asns, questions) => {
    const given = settings.GEOIP_DB === undefined ? settings : { ...settings, GEOIP_DB: file() };
    const app = startWith(given);
    await app.service.dmarc.jobs.findAddressFacts();
    expect(app.asns()).toEqual(asns);
    expect(app.asked().toSorted()).toEqual(questions.toSorted());
  });

  test("that are not there stop the start, with the setting and the file in the message", () => {
    const none = join(folder, "none.mmdb");
    const problem = `POSTWARDEN_GEOIP_DB: ${none} cannot be used: no such file.`;
    expect(() => start({ settings: { GEOIP_DB: none } })).toThrow(new SettingsError([problem]));
  });

  test("that are damaged later are a finding of /readyz, and stay in use as they were", async () => {
    const app = startWith({ ASN_LOOKUP: "off", GEOIP_DB: file() });
    expect((await app.request("GET", "/readyz")).body).toEqual({ status: "ok", findings: [] });
    writeFileSync(file(), "half a file");
    await app.service.dmarc.jobs.findAddressFacts();
    expect((await app.request("GET", "/readyz")).body).toMatchObject({
      status: "degraded",
      findings: [expect.stringContaining(`POSTWARDEN_GEOIP_DB: ${file()} cannot be read again`)],
    });
    expect(app.asns()).toEqual([64_500, null]);
    expect(app.logged.join()).toContain("the previous contents stay in use");
  });
});
