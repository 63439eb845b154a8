import type { Shortage } from "../../fairness/budget.ts";

/** A call to the chain that was not made: its owner, or the service, has used its calls. */
export class NoRoomError extends Error {
  override readonly name = "NoRoomError";
  readonly shortage: Required<Shortage>;

  constructor(shortage: Required<Shortage>) {
    super("the plan of calls to the chain has no room");
    this.shortage = shortage;
  }
}
