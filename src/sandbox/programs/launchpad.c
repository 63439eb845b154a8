/*
 * A stand-in for the launch platform's program, for the sandbox's chain only.
 *
 * It knows one instruction, `collect_creator_fee`, with the discriminator, the accounts and the
 * effect of the real one: everything above the rent-exempt minimum moves from the creator vault
 * (seeds "creator-vault", creator; owned by the System program, no data) to the creator. Nobody
 * but the fee payer signs. Nothing above the minimum is no error: nothing moves.
 *
 * Built by scripts/build-sandbox-program.ts, which allows no global and no constant data, hence
 * the seeds written as numbers. All numbers are little-endian, as the machine is.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

typedef struct { const u8 *addr; u64 len; } Seed;
typedef struct { const Seed *addr; u64 len; } SignerSeeds;
typedef struct { const u8 *pubkey; u8 is_writable; u8 is_signer; } AccountMeta;
typedef struct { const u8 *program_id; const AccountMeta *accounts; u64 accounts_len; const u8 *data; u64 data_len; } Instruction;
typedef struct {
  const u8 *key; const u64 *lamports; u64 data_len; const u8 *data; const u8 *owner;
  u64 rent_epoch; u8 is_signer; u8 is_writable; u8 executable;
} AccountInfo;

extern u64 sol_try_find_program_address(const Seed *seeds, u64 len, const u8 *program_id, u8 *address, u8 *bump);
extern u64 sol_get_rent_sysvar(void *rent);
extern u64 sol_invoke_signed_c(const Instruction *instruction, const AccountInfo *infos, u64 infos_len, const SignerSeeds *seeds, u64 seeds_len);

/* ProgramError codes, as the runtime numbers them: n << 32. */
#define INVALID_ARGUMENT (2ULL << 32)
#define INVALID_INSTRUCTION_DATA (3ULL << 32)
#define NOT_ENOUGH_ACCOUNT_KEYS (11ULL << 32)
#define INVALID_SEEDS (14ULL << 32)
#define INVALID_ACCOUNT_OWNER (23ULL << 32)

#define COLLECT_CREATOR_FEE 0x84db1cc67b561614ULL /* 14 16 56 7b c6 1c db 84 */
#define MAX_PERMITTED_DATA_INCREASE 10240
#define ACCOUNT_STORAGE_OVERHEAD 128
#define F64_ONE 0x3ff0000000000000ULL

enum { CREATOR, CREATOR_VAULT, SYSTEM_PROGRAM, EVENT_AUTHORITY, PROGRAM, ACCOUNTS };

static inline u64 read_u64(const u8 *at) { return *(const u64 *)at; }

static inline int same_key(const u8 *a, const u8 *b) {
  return read_u64(a) == read_u64(b) && read_u64(a + 8) == read_u64(b + 8) &&
         read_u64(a + 16) == read_u64(b + 16) && read_u64(a + 24) == read_u64(b + 24);
}

static inline int is_system_program(const u8 *key) {
  return (read_u64(key) | read_u64(key + 8) | read_u64(key + 16) | read_u64(key + 24)) == 0;
}

/* An account as the loader lays it out in the input; what follows the key depends on the data's length. */
static inline const u8 *key_of(const u8 *account) { return account + 8; }
static inline const u8 *owner_of(const u8 *account) { return account + 40; }
static inline u64 lamports_of(const u8 *account) { return read_u64(account + 72); }

static inline const u8 *after(const u8 *account) {
  u64 end = (u64)account + 88 + read_u64(account + 80) + MAX_PERMITTED_DATA_INCREASE;
  return (const u8 *)(((end + 7) & ~7ULL) + 8);
}

static inline void describe(const u8 *account, AccountInfo *info) {
  info->key = key_of(account);
  info->lamports = (const u64 *)(account + 72);
  info->data_len = read_u64(account + 80);
  info->data = account + 88;
  info->owner = owner_of(account);
  info->rent_epoch = read_u64(after(account) - 8);
  info->is_signer = account[1];
  info->is_writable = account[2];
  info->executable = account[3];
}

u64 entrypoint(const u8 *input) {
  const u8 *accounts[ACCOUNTS];
  if (read_u64(input) != ACCOUNTS) return NOT_ENOUGH_ACCOUNT_KEYS;
  const u8 *at = input + 8;
  for (int i = 0; i < ACCOUNTS; i++) {
    if (at[0] != 0xff) return INVALID_ARGUMENT; /* the same account twice */
    accounts[i] = at;
    at = after(at);
  }
  if (read_u64(at) != 8 || read_u64(at + 8) != COLLECT_CREATOR_FEE) return INVALID_INSTRUCTION_DATA;
  const u8 *program_id = at + 16;

  /* "creator-vault" and "__event_authority" */
  u64 vault_seed[2], event_seed[3];
  vault_seed[0] = 0x2d726f7461657263ULL;
  vault_seed[1] = 0x746c756176ULL;
  event_seed[0] = 0x5f746e6576655f5fULL;
  event_seed[1] = 0x7469726f68747561ULL;
  event_seed[2] = 0x79ULL;

  u8 expected[32];
  u8 bump;
  Seed seeds[3] = {{(const u8 *)event_seed, 17}, {0, 0}, {0, 0}};
  if (sol_try_find_program_address(seeds, 1, program_id, expected, &bump)) return INVALID_SEEDS;
  if (!same_key(expected, key_of(accounts[EVENT_AUTHORITY]))) return INVALID_SEEDS;

  seeds[0].addr = (const u8 *)vault_seed;
  seeds[0].len = 13;
  seeds[1].addr = key_of(accounts[CREATOR]);
  seeds[1].len = 32;
  if (sol_try_find_program_address(seeds, 2, program_id, expected, &bump)) return INVALID_SEEDS;
  if (!same_key(expected, key_of(accounts[CREATOR_VAULT]))) return INVALID_SEEDS;
  seeds[2].addr = &bump;
  seeds[2].len = 1;

  if (!is_system_program(owner_of(accounts[CREATOR_VAULT]))) return INVALID_ACCOUNT_OWNER;
  if (!is_system_program(key_of(accounts[SYSTEM_PROGRAM]))) return INVALID_ARGUMENT;
  if (!same_key(key_of(accounts[PROGRAM]), program_id)) return INVALID_ARGUMENT;

  /* lamports a byte (u64), exemption threshold (f64, 1.0 since SIMD-0194), burn percent (u8) */
  u64 rent[3];
  if (sol_get_rent_sysvar(rent) || rent[1] != F64_ONE) return INVALID_ARGUMENT;
  u64 minimum = ACCOUNT_STORAGE_OVERHEAD * rent[0];
  u64 held = lamports_of(accounts[CREATOR_VAULT]);
  if (held <= minimum) return 0;

  /* System program, instruction 2: Transfer { lamports: u64 } */
  u32 transfer[3];
  transfer[0] = 2;
  transfer[1] = (u32)(held - minimum);
  transfer[2] = (u32)((held - minimum) >> 32);
  AccountMeta metas[2] = {
    {key_of(accounts[CREATOR_VAULT]), 1, 1},
    {key_of(accounts[CREATOR]), 1, 0},
  };
  Instruction instruction = {key_of(accounts[SYSTEM_PROGRAM]), metas, 2, (const u8 *)transfer, 12};
  SignerSeeds signer = {seeds, 3};
  AccountInfo infos[2];
  describe(accounts[CREATOR_VAULT], &infos[0]);
  describe(accounts[CREATOR], &infos[1]);
  return sol_invoke_signed_c(&instruction, infos, 2, &signer, 1);
}
