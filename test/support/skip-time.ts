import { onTestFinished, vi } from "vitest";

/** Returns a function that lets this process's clocks skip so many ms, until the test ends. */
export function createSkipTime(): (ms: number) => void {
  let skippedMs = 0;
  const [monotonic, wall] = [performance.now.bind(performance), Date.now.bind(Date)];
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + skippedMs);
  vi.spyOn(Date, "now").mockImplementation(() => wall() + skippedMs);
  onTestFinished(() => void vi.restoreAllMocks());
  return (ms) => {
    skippedMs += ms;
  };
}
