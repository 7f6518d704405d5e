import { describe, expect, test } from "bun:test";
import { assetPath, findAsset } from "./frame.tsx";

const textOf = async (name: "style.css" | "app.js"): Promise<string> => {
  const response = await findAsset(new Request(`http://localhost${assetPath(name)}`), assetPath(name));
  return (await response?.text()) ?? "";
};

describe("the style sheet", () => {
  test("closes every block: what follows an open one would hold only inside it", async () => {
    const text = (await textOf("style.css")).replaceAll(/\/\*[\s\S]*?\*\//g, "");
    const depths: number[] = [];
    for (const [brace] of text.matchAll(/[{}]/g)) depths.push((depths.at(-1) ?? 0) + (brace === "{" ? 1 : -1));
    expect(depths.length).toBeGreaterThan(100);
    expect(depths.at(-1)).toBe(0);
    expect(Math.min(...depths)).toBe(0);
    // A rule is at most inside one condition.
    expect(Math.max(...depths)).toBe(2);
  });
});
