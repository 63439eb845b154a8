/*
 * Shared by the sandbox's programs: the layout of their input, the syscalls, and common checks and
 * calls.
 *
 * scripts/build-sandbox-program.ts builds the programs and allows no globals and no constant data, so
 * seeds and keys are written as numbers, in little-endian order. A function has 512 bytes of stack.
 * Everything is inlined into the entrypoint, and one inlined function reuses the stack of another. A call
 * of a function could pass only 5 arguments, so clang must not decide against inlining.
 */
#define inline inline __attribute__((always_inline))

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
#define INVALID_ACCOUNT_DATA (4ULL << 32)
#define INSUFFICIENT_FUNDS (6ULL << 32)
#define INCORRECT_PROGRAM_ID (7ULL << 32)
#define MISSING_REQUIRED_SIGNATURE (8ULL << 32)
#define UNINITIALIZED_ACCOUNT (10ULL << 32)
#define NOT_ENOUGH_ACCOUNT_KEYS (11ULL << 32)
#define INVALID_SEEDS (14ULL << 32)
#define INVALID_ACCOUNT_OWNER (23ULL << 32)
#define ARITHMETIC_OVERFLOW (24ULL << 32)
/* Errors that every program of the platform numbers alike. */
#define ACCOUNT_OWNED_BY_WRONG_PROGRAM 3007
#define ACCOUNT_NOT_INITIALIZED 3012

/* So11111111111111111111111111111111111111112 */
#define WSOL_MINT_ID 0x8481abfe57889b06ULL, 0x35c01846637f68fbULL, 0x553beb1adc39c4daULL, 0x0100000000f0a098ULL
/* TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA */
#define TOKEN_PROGRAM_ID 0x93a165d7e1f6dd06ULL, 0xac79ebce46e1cbd9ULL, 0x91375b5fed85b41cULL, 0xa900ff7e85f58c3aULL
/* TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb */
#define TOKEN_2022_PROGRAM_ID 0xde8f75eee1f6dd06ULL, 0xdacd6ce4bc5d4218ULL, 0x270db9834dfc1ab6ULL, 0xfc8ba1d828f9bdfeULL
/* ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL */
#define ASSOCIATED_TOKEN_PROGRAM_ID 0xf189244e8f25978cULL, 0x830d8e1429103dbbULL, 0x8410ffda99135a0bULL, 0x59f8e9dbd87b8e04ULL

/* Both programs have this instruction: 20 f6 bf 34 08 c9 49 ba */
#define SWEEP_CREATOR_FEE 0xba49c90834bff620ULL

/* Begins the data of a program's call to itself, with which it logs an event: e4 45 a5 2e 51 cb 9a 1d */
#define EVENT 0x1d9acb512ea545e4ULL

/* 32 KiB of memory. A call builds its AccountInfos here, because the stack is too small. */
#define HEAP ((void *)0x300000000ULL)
/* A program's list of its accounts is here, after the AccountInfos. */
#define ACCOUNTS ((const u8 **)0x300001000ULL)

#define MAX_PERMITTED_DATA_INCREASE 10240
#define ACCOUNT_STORAGE_OVERHEAD 128
#define F64_ONE 0x3ff0000000000000ULL
/* The rent epoch of every account, since all are exempt. */
#define RENT_EXEMPT (~0ULL)

static inline u64 read_u64(const u8 *at) { return *(const u64 *)at; }
static inline void write_u64(const u8 *at, u64 value) { *(u64 *)at = value; }

static inline int same_key(const u8 *a, const u8 *b) {
  return read_u64(a) == read_u64(b) && read_u64(a + 8) == read_u64(b + 8) &&
         read_u64(a + 16) == read_u64(b + 16) && read_u64(a + 24) == read_u64(b + 24);
}

static inline int is_key(const u8 *key, u64 first, u64 second, u64 third, u64 fourth) {
  return read_u64(key) == first && read_u64(key + 8) == second && read_u64(key + 16) == third && read_u64(key + 24) == fourth;
}

static inline int is_system_program(const u8 *key) {
  return (read_u64(key) | read_u64(key + 8) | read_u64(key + 16) | read_u64(key + 24)) == 0;
}

/* An account in the layout of the loader's input. Its length depends on the length of its data. */
static inline int is_signer(const u8 *account) { return account[1]; }
static inline int is_writable(const u8 *account) { return account[2]; }
static inline int is_executable(const u8 *account) { return account[3]; }
static inline const u8 *key_of(const u8 *account) { return account + 8; }
static inline const u8 *owner_of(const u8 *account) { return account + 40; }
static inline u64 lamports_of(const u8 *account) { return read_u64(account + 72); }
static inline u64 data_len_of(const u8 *account) { return read_u64(account + 80); }
static inline const u8 *data_of(const u8 *account) { return account + 88; }

static inline const u8 *after(const u8 *account) {
  u64 end = (u64)data_of(account) + data_len_of(account) + MAX_PERMITTED_DATA_INCREASE;
  return (const u8 *)(((end + 7) & ~7ULL) + 8);
}

/* Reads exactly `count` distinct accounts. `*data` then points to the length of the instruction's data, before the data. */
static inline u64 read_accounts(const u8 *input, const u8 **accounts, u64 count, const u8 **data) {
  if (read_u64(input) != count) return NOT_ENOUGH_ACCOUNT_KEYS;
  const u8 *at = input + 8;
  for (u64 i = 0; i < count; i++) {
    if (at[0] != 0xff) return INVALID_ARGUMENT; /* a duplicate account */
    accounts[i] = at;
    at = after(at);
  }
  *data = at;
  return 0;
}

/* Whether `key` is the program's address for the seeds. If so, `*bump` is its bump seed. */
static inline int is_derived(const u8 *key, const Seed *seeds, u64 len, const u8 *program_id, u8 *bump) {
  u8 expected[32];
  return !sol_try_find_program_address(seeds, len, program_id, expected, bump) && same_key(expected, key);
}

/* Seeds "__event_authority" */
static inline int is_event_authority(const u8 *key, const u8 *program_id) {
  u64 text[3];
  u8 bump;
  text[0] = 0x5f746e6576655f5fULL;
  text[1] = 0x7469726f68747561ULL;
  text[2] = 0x79ULL;
  Seed seed = {(const u8 *)text, 17};
  return is_derived(key, &seed, 1, program_id, &bump);
}

/* Whether `account` is the associated token account of `owner` */
static inline int is_token_account(const u8 *account, const u8 *owner, const u8 *mint, const u8 *token_program, const u8 *associated_token_program) {
  u8 bump;
  Seed seeds[3] = {{key_of(owner), 32}, {key_of(token_program), 32}, {key_of(mint), 32}};
  return is_derived(key_of(account), seeds, 3, key_of(associated_token_program), &bump);
}

/* The rent-exempt minimum in lamports for `data_len` bytes of data, or 0 if it is unknown. */
static inline u64 rent_exempt_minimum(u64 data_len) {
  /* lamports a byte (u64), exemption threshold (f64, 1.0 since SIMD-0194), burn percent (u8) */
  u64 rent[3];
  if (sol_get_rent_sysvar(rent) || rent[1] != F64_ONE) return 0;
  return (ACCOUNT_STORAGE_OVERHEAD + data_len) * rent[0];
}

static inline void describe(const u8 *account, AccountInfo *info) {
  info->key = key_of(account);
  info->lamports = (const u64 *)(account + 72);
  info->data_len = data_len_of(account);
  info->data = data_of(account);
  info->owner = owner_of(account);
  info->rent_epoch = RENT_EXEMPT;
  info->is_signer = account[1];
  info->is_writable = account[2];
  info->executable = account[3];
}

/*
 * Logs an event, as a call of this program to itself. `discriminator` is the real event's; its
 * fields are left out.
 */
static inline u64 emit(const u8 *event_authority, const u8 *program_id, u64 discriminator) {
  u64 text[3], data[2];
  u8 bump;
  text[0] = 0x5f746e6576655f5fULL;
  text[1] = 0x7469726f68747561ULL;
  text[2] = 0x79ULL;
  data[0] = EVENT;
  data[1] = discriminator;
  Seed seeds[2] = {{(const u8 *)text, 17}, {&bump, 1}};
  if (!is_derived(key_of(event_authority), seeds, 1, program_id, &bump)) return INVALID_SEEDS;
  AccountMeta metas[1] = {{key_of(event_authority), 0, 1}};
  Instruction instruction = {program_id, metas, 1, (const u8 *)data, 16};
  SignerSeeds signer = {seeds, 2};
  AccountInfo *infos = HEAP;
  describe(event_authority, &infos[0]);
  return sol_invoke_signed_c(&instruction, infos, 1, &signer, 1);
}

/* The instruction that `emit` calls: one account, the event authority, which must sign. */
static inline u64 accept_event(const u8 *input) {
  const u8 *accounts[1];
  const u8 *data;
  u64 error = read_accounts(input, accounts, 1, &data);
  if (error) return error;
  if (read_u64(data) < 8 || read_u64(data + 8) != EVENT) return INVALID_INSTRUCTION_DATA;
  if (!is_signer(accounts[0])) return MISSING_REQUIRED_SIGNATURE;
  return is_event_authority(key_of(accounts[0]), data + 8 + read_u64(data)) ? 0 : INVALID_SEEDS;
}

/* System program, instruction 2: Transfer { lamports: u64 }, signed by the seeds of `from`, or by the transaction if `signer` is 0 */
static inline u64 transfer(const u8 *system_program, const u8 *from, const u8 *to, u64 lamports, const SignerSeeds *signer) {
  u32 data[3];
  data[0] = 2;
  data[1] = (u32)lamports;
  data[2] = (u32)(lamports >> 32);
  AccountMeta metas[2] = {{key_of(from), 1, 1}, {key_of(to), 1, 0}};
  Instruction instruction = {key_of(system_program), metas, 2, (const u8 *)data, 12};
  AccountInfo *infos = HEAP;
  describe(from, &infos[0]);
  describe(to, &infos[1]);
  return sol_invoke_signed_c(&instruction, infos, 2, signer, signer ? 1 : 0);
}

/* Makes the payer raise the lamports of an account to `needed`, with at most `most` lamports. */
static inline u64 top_up(const u8 *account, u64 needed, u64 most, const u8 *payer, const u8 *system_program) {
  u64 held = lamports_of(account);
  if (held >= needed) return 0;
  u64 missing = needed - held;
  return transfer(system_program, payer, account, missing < most ? missing : most, 0);
}

/* Grows an account of this program to `len` bytes, if it is shorter. The new bytes are zero. */
static inline void grow(const u8 *account, u64 len) {
  if (data_len_of(account) < len) write_u64(account + 80, len);
}

/* The error code of an account that `is_owned` says is not of the expected program, or 0. */
static inline u64 check_owner(const u8 *account, int is_owned) {
  if (is_owned) return 0;
  int is_missing = is_system_program(owner_of(account)) && !lamports_of(account);
  return is_missing ? ACCOUNT_NOT_INITIALIZED : ACCOUNT_OWNED_BY_WRONG_PROGRAM;
}

/* Token program, instruction 3: Transfer { amount: u64 }, signed by the seeds of `authority` */
static inline u64 transfer_tokens(const u8 *token_program, const u8 *from, const u8 *to, const u8 *authority, u64 amount, const SignerSeeds *signer) {
  u64 data[2];
  data[0] = 3ULL << 56; /* the data starts at its last byte */
  data[1] = amount;
  AccountMeta metas[3] = {{key_of(from), 1, 0}, {key_of(to), 1, 0}, {key_of(authority), 0, 1}};
  Instruction instruction = {key_of(token_program), metas, 3, (const u8 *)data + 7, 9};
  AccountInfo *infos = HEAP;
  describe(from, &infos[0]);
  describe(to, &infos[1]);
  describe(authority, &infos[2]);
  return sol_invoke_signed_c(&instruction, infos, 3, signer, 1);
}

/*
 * Associated Token program, instruction 1: CreateIdempotent. Signed by the seeds of the payer, or by the transaction
 * if `signer` is 0. Programs need no AccountInfo.
 */
static inline u64 create_token_account(
    const u8 *account, const u8 *owner, const u8 *mint, const u8 *payer, const u8 *token_program,
    const u8 *associated_token_program, const u8 *system_program, const SignerSeeds *signer) {
  u8 data = 1;
  AccountMeta metas[6] = {
    {key_of(payer), 1, 1},
    {key_of(account), 1, 0},
    {key_of(owner), 0, 0},
    {key_of(mint), 0, 0},
    {key_of(system_program), 0, 0},
    {key_of(token_program), 0, 0},
  };
  Instruction instruction = {key_of(associated_token_program), metas, 6, &data, 1};
  AccountInfo *infos = HEAP;
  describe(payer, &infos[0]);
  describe(account, &infos[1]);
  describe(mint, &infos[2]);
  describe(owner, &infos[3]);
  return sol_invoke_signed_c(&instruction, infos, 4, signer, signer ? 1 : 0);
}
