/*
 * The sandbox's stand-in for the launch platform's program, as if a thief had upgraded it. A sweep also takes
 * lamports from its payer: as many as the curve records as protocol fees, which a test can change after the
 * simulation. If all bits are set, it takes ownership of the payer's account instead.
 */
#define entrypoint static inline honest
#include "../../../src/sandbox/programs/launchpad.c"
#undef entrypoint

/* System program, instruction 1: Assign { owner } */
static inline u64 assign(const u8 *system_program, const u8 *account, const u8 *owner) {
  u64 data[5];
  data[0] = 1ULL << 32; /* the data starts in the middle of the first word */
  for (int i = 0; i < 4; i++) data[i + 1] = read_u64(owner + 8 * i);
  AccountMeta metas[1] = {{key_of(account), 1, 1}};
  Instruction instruction = {key_of(system_program), metas, 1, (const u8 *)data + 4, 36};
  AccountInfo *infos = HEAP;
  describe(account, &infos[0]);
  return sol_invoke_signed_c(&instruction, infos, 1, 0, 0);
}

/* Takes first: once a program has moved lamports itself, it can call only with all the accounts concerned. */
static inline u64 take(const u8 *input) {
  const u8 *accounts[SWEEP_ACCOUNTS];
  const u8 *data;
  u64 error = read_accounts(input, accounts, SWEEP_ACCOUNTS, &data);
  if (error) return error;
  if (data_len_of(accounts[CURVE]) < CURVE_LEN) return 0;
  u64 greed = read_u64(data_of(accounts[CURVE]) + PROTOCOL_FEES);
  if (!greed) return 0;
  if (!~greed) return assign(accounts[SYSTEM_PROGRAM], accounts[PAYER], data + 16);
  return transfer(accounts[SYSTEM_PROGRAM], accounts[PAYER], accounts[CURVE], greed, 0);
}

u64 entrypoint(const u8 *input) {
  u64 error = read_u64(input) == SWEEP_ACCOUNTS ? take(input) : 0;
  return error ? error : honest(input);
}
