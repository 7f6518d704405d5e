import { type Mark, median } from "./marks.ts";
import { newDataDir, residentMb, type Stage, startBinary } from "./stage.ts";

const STARTS = 7;
const IDLE_AFTER_MS = 5_000;

/** How soon the binary answers after its start, and how much memory it has when nobody asks anything. */
export const measureStart = async (stage: Stage): Promise<Mark[]> => {
  const fresh: number[] = [];
  const existing: number[] = [];
  for (let round = 0; round < STARTS; round++) {
    const dataDir = await newDataDir(stage, `start-${round}`);
    for (const times of [fresh, existing]) {
      const service = await startBinary(stage, dataDir);
      times.push(service.firstAnswerMs);
      await service.stop();
    }
  }
  const service = await startBinary(stage, await newDataDir(stage, "idle"));
  await Bun.sleep(IDLE_AFTER_MS);
  const idleMb = await residentMb(service.pid);
  await service.stop();

  const group = "start";
  const note = `median of ${STARTS}`;
  const limit = { most: 100 };
  return [
    { group, what: "first answer on an empty directory", value: median(fresh), unit: "ms", limit, note },
    { group, what: "first answer on an existing one", value: median(existing), unit: "ms", limit, note },
    { group, what: "memory when idle", value: idleMb, unit: "MB", limit: { most: 80 }, note: "resident, after 5 s" },
  ];
};
