import { afterEach, describe, expect, test } from "bun:test";
import { HOSTILE } from "../hostile.ts";
import { leave } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const RUN = Date.now().toString(36);
const CSV = [
  `"${HOSTILE.script}";"E-Mail";"city"`,
  `1;erik.${RUN}@hotelmar-lab.com;Köln`,
  "2;nobody@acme-lab.com;=1+1",
  "3;nobody@acme-lab.com;again",
  '4;;"empty"',
  `5;not an address;"${HOSTILE.attribute.replaceAll('"', '""')}"`,
].join("\r\n");

const download = async (hands: Hands, link: RegExp): Promise<string> => {
  const href = await hands.page.getByRole("link", { name: link }).first().getAttribute("href");
  return (await hands.page.request.get(href ?? "")).text();
};

describe.each(WAYS)("a list %s", (name, way) => {
  const reload = !way.hasScripts;

  test("is uploaded, previewed, started, read, downloaded and deleted", async () => {
    const hands = await Hands.of("owner", way, "/lists");
    const file = { name: `journey ${name}.csv`, mimeType: "text/csv", text: CSV };
    if (way.hasScripts && !way.isKeyboard) await hands.drop(file);
    else {
      await hands.attach("File with addresses", file);
      await hands.press("Upload and preview");
    }
    const preview = await hands.sees("Start verification");
    expect(preview).toContain("E-Mail");
    expect(preview).toContain(HOSTILE.script);
    await hands.choose("Column of addresses", "E-Mail").catch(() => hands.choose("Column of addresses", "2: E-Mail"));
    await hands.press("Read again");
    await hands.sees("Start verification");
    await hands.press("Start verification");
    await hands.sees("Completed", { reload });
    await hands.sees(`erik.${RUN}@hotelmar-lab.com`, { reload });
    const results = await download(hands, /^CSV of these \d+ rows/);
    expect(results).toContain("mailbox_not_found");
    expect(results).toContain(`erik.${RUN}@hotelmar-lab.com`);
    await hands.follow("Mail hosts");
    await hands.sees(/Mail hosts that refuse or delay us/);
    await hands.follow("About");
    await hands.sees("UTF-8");
    await hands.follow("Compare");
    await hands.sees(/Compare with an earlier list/);
    await hands.follow("Delete");
    await hands.press("Delete the list");
    await hands.sees(/deleted/);
  });

  test("is downloaded as it was chosen, with the rows that the panel counts", async () => {
    const hands = await Hands.of("owner", way, "/lists");
    await hands.attach("File with addresses", { name: `download ${name}.csv`, mimeType: "text/csv", text: CSV });
    await hands.press("Upload and preview");
    await hands.sees("Start verification");
    await hands.press("Start verification");
    await hands.sees("Completed", { reload });
    await hands.follow("Download");
    await hands.choose("Rows", "Undeliverable");
    if (reload) await hands.press("Count the rows");
    // Two addresses and one text without an address; the repeat and the empty row are left out.
    expect(await hands.sees(/2 rows with \d+ columns: |3 rows with \d+ columns: /)).not.toContain("Email Address");
    await hands.choose("For", "Mailchimp");
    if (reload) await hands.press("Count the rows");
    const [, rows = ""] =
      /(\d+) rows with \d+ columns: Email Address/.exec(await hands.sees(/columns: Email Address/)) ?? [];
    const [file] = await Promise.all([hands.page.waitForEvent("download"), hands.press("Download")]);
    const lines = (await Bun.file((await file.path()) ?? "").text()).trimEnd().split("\r\n");
    expect(lines[0]).toContain("Email Address");
    expect(lines).toHaveLength(Number(rows) + 1);
  });

  test("is compared with the one before of the same name", async () => {
    const hands = await Hands.of("owner", way, "/lists/new");
    for (const text of ["nobody@acme-lab.com\ngone@acme-lab.com\n", "nobody@acme-lab.com\nnew@acme-lab.com\n"]) {
      await hands.person.goto("/lists/new");
      await hands.fill("Or paste addresses", text);
      await hands.press("Preview");
      await hands.sees("Start verification");
      await hands.fill("Name", `monthly ${RUN} ${name}`);
      await hands.press("Start verification");
      await hands.sees("Completed", { reload });
    }
    await hands.follow("Compare");
    await hands.sees(/New 1 Only in this list\..*Gone 1 Only in the earlier list\./s);
    expect(await download(hands, /^CSV of Gone/)).toContain("gone@acme-lab.com,gone,");
  });

  test("is pasted, and discarded", async () => {
    const hands = await Hands.of("owner", way, "/lists/new");
    await hands.fill("Or paste addresses", "Ada <ada@hotelmar-lab.com>, jan@acme-lab.com; third@acme-lab.com");
    await hands.press("Preview");
    await hands.sees("Start verification");
    await hands.sees("jan@acme-lab.com");
    await hands.press("Discard this upload");
    await hands.sees("The upload is deleted.");
  });
});

describe("a running list", () => {
  test("shows its progress without a reload, and its rows", async () => {
    const hands = await Hands.of("owner", WAYS[0][1], "/lists?status=running");
    await hands.follow("customers.csv");
    const progress = /([\d,]+) of [\d,]+ addresses/;
    const before = progress.exec(await hands.person.text())?.[0] ?? "";
    expect(before).toMatch(progress);
    await hands.person.page.getByText(before).first().waitFor({ state: "detached" });
    const finished = (text: string) => Number(progress.exec(text)?.[1]?.replaceAll(",", ""));
    expect(finished(await hands.person.text())).toBeGreaterThan(finished(before));
  });
});
