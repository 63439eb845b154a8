import type { LoopbackServer } from "../../src/sandbox/loopback-server.ts";

export type RecordingServer<Call> = LoopbackServer<Call> & {
  /** The calls, oldest first, including failed ones. `calls.length = 0` clears the list. */
  readonly calls: Call[];
};

/** Records a server's calls: as a fault that never applies, and that `clear` keeps. */
export function recordCalls<Call>(server: LoopbackServer<Call>): RecordingServer<Call> {
  const calls: Call[] = [];
  const { add, clear } = server.faults;
  const record = () =>
    add({
      when(call) {
        calls.push(call);
        return false;
      },
    });
  record();
  return {
    ...server,
    calls,
    faults: {
      add,
      clear() {
        clear();
        record();
      },
    },
  };
}
