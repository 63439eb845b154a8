/*
 * A stand-in for the launch platform's AMM, for the sandbox's chain only. It has two instructions, with the
 * discriminators, the accounts and the effect of the real ones: src/chain/launchpad/platform-model.ts has the rules, and
 * tests hold both against it. Only the fee payer signs. Both succeed and move nothing if there is nothing to move.
 *
 * `transfer_creator_fees_to_pump` unwraps the SOL in the token account of the creator's vault authority
 * (seeds "creator_vault", creator) and moves it to the creator vault of the launch platform's main
 * program. It moves nothing if the token account has fewer lamports than its own rent, or if the creator vault would
 * stay below its rent-exempt minimum. It unwraps as the real one does, by closing the token account and creating it
 * again. This also moves lamports that were sent to the token account but never wrapped, and all of the authority's.
 * https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/CREATOR_FEE_SHARING.md
 *
 * `sweep_creator_fee` moves the creator fees that wait in a pool to the token account of that vault authority. The
 * payer pays to grow a pool of an older layout, and to create the token account.
 * https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/SWEEP_FEES.md
 *
 * Unlike the real program's, its events have no fields, its compute units are fewer, and it has its own codes for
 * accounts that no caller of this service passes.
 */
#include "sbf.h"

#define TRANSFER_CREATOR_FEES_TO_PUMP 0xf16ce5e45586348bULL /* 8b 34 86 55 e4 e5 6c f1 */

/* The discriminator of its event, and the error if a pool's token account holds less than the fees. */
#define SWEEP_EVENT 0xa58782e46124a482ULL
#define OVERFLOW 6023

#define TOKEN_ACCOUNT_LEN 165
#define TOKEN_AMOUNT 64

/* The account Pool: f1 9a 6d 04 11 b1 6d bc, and the offsets of its fields. Older pools are shorter. */
#define POOL_DISCRIMINATOR 0xbc6db111046d9af1ULL
#define POOL_BUMP 8
#define POOL_INDEX 9
#define POOL_CREATOR 11
#define POOL_BASE_MINT 43
#define POOL_QUOTE_MINT 75
#define POOL_QUOTE_TOKENS 171
#define COIN_CREATOR 211
#define VIRTUAL_QUOTE_RESERVES 245 /* a signed integer of 128 bits */
#define CREATOR_FEES 279
#define POOL_LEN 287

enum {
  WSOL_MINT, TOKEN_PROGRAM, SYSTEM_PROGRAM, ASSOCIATED_TOKEN_PROGRAM, CREATOR,
  VAULT_AUTHORITY, VAULT, PUMP_VAULT, EVENT_AUTHORITY, PROGRAM, TRANSFER_ACCOUNTS
};

enum {
  PAYER, GLOBAL_CONFIG, POOL, QUOTE_MINT, SWEEP_TOKEN_PROGRAM, POOL_TOKENS, RECIPIENT, RECIPIENT_TOKENS,
  SWEEP_SYSTEM_PROGRAM, SWEEP_ASSOCIATED_TOKEN_PROGRAM, SWEEP_EVENT_AUTHORITY, SWEEP_PROGRAM, SWEEP_ACCOUNTS
};

/* Checks the accounts of a transfer that are the same for every creator. Returns an error code, or 0. */
static inline u64 check_programs(const u8 **accounts, const u8 *program_id) {
  if (!is_key(key_of(accounts[WSOL_MINT]), WSOL_MINT_ID)) return INVALID_ARGUMENT;
  if (!is_key(key_of(accounts[TOKEN_PROGRAM]), TOKEN_PROGRAM_ID)) return INCORRECT_PROGRAM_ID;
  if (!is_system_program(key_of(accounts[SYSTEM_PROGRAM]))) return INCORRECT_PROGRAM_ID;
  if (!is_key(key_of(accounts[ASSOCIATED_TOKEN_PROGRAM]), ASSOCIATED_TOKEN_PROGRAM_ID)) return INCORRECT_PROGRAM_ID;
  if (!same_key(key_of(accounts[PROGRAM]), program_id)) return INCORRECT_PROGRAM_ID;
  if (!is_event_authority(key_of(accounts[EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;
  return 0;
}

/* Seeds "creator_vault", creator. Fills `seeds`, whose first one is stored in `seed`, and `bump` to sign with. */
static inline int is_vault_authority(const u8 *authority, Seed *seeds, u64 *seed, const u8 *creator, const u8 *program_id, u8 *bump) {
  seed[0] = 0x5f726f7461657263ULL;
  seed[1] = 0x746c756176ULL;
  seeds[0].addr = (const u8 *)seed;
  seeds[0].len = 13;
  seeds[1].addr = creator;
  seeds[1].len = 32;
  seeds[2].addr = bump;
  seeds[2].len = 1;
  return is_derived(key_of(authority), seeds, 2, program_id, bump);
}

/* Checks the creator's two vaults; the caller has checked the vault authority. Returns an error code, or 0. */
static inline u64 check_vaults(const u8 **accounts) {
  u64 pump[4], vault_seed[2];
  u8 bump;
  /* 6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P, word by word: a syscall takes its address, so an initializer would become constant data */
  pump[0] = 0xcf5a6693f6e05601ULL;
  pump[1] = 0xaa5b17bf6815db44ULL;
  pump[2] = 0x3bffd2f597cb8951ULL;
  pump[3] = 0xb0186dfdb62b5d65ULL;
  /* "creator-vault": a hyphen, unlike the AMM's own seed */
  vault_seed[0] = 0x2d726f7461657263ULL;
  vault_seed[1] = 0x746c756176ULL;
  Seed seeds[2] = {{(const u8 *)vault_seed, 13}, {key_of(accounts[CREATOR]), 32}};
  if (!is_derived(key_of(accounts[PUMP_VAULT]), seeds, 2, (const u8 *)pump, &bump)) return INVALID_SEEDS;
  if (!is_token_account(accounts[VAULT], accounts[VAULT_AUTHORITY], accounts[WSOL_MINT], accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM])) return INVALID_SEEDS;

  if (!is_writable(accounts[VAULT_AUTHORITY])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[VAULT])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[PUMP_VAULT])) return INVALID_ARGUMENT;
  if (!is_system_program(owner_of(accounts[PUMP_VAULT]))) return INVALID_ACCOUNT_OWNER;
  u64 error = check_owner(accounts[VAULT], same_key(owner_of(accounts[VAULT]), key_of(accounts[TOKEN_PROGRAM])));
  if (error) return error;
  if (data_len_of(accounts[VAULT]) != TOKEN_ACCOUNT_LEN) return INVALID_ACCOUNT_DATA;
  return 0;
}

/* Token program, instruction 9: CloseAccount. The authority receives all the lamports. */
static inline u64 close_vault(const u8 **accounts, const SignerSeeds *signer) {
  u8 data = 9;
  AccountMeta metas[3] = {
    {key_of(accounts[VAULT]), 1, 0},
    {key_of(accounts[VAULT_AUTHORITY]), 1, 0},
    {key_of(accounts[VAULT_AUTHORITY]), 0, 1},
  };
  Instruction instruction = {key_of(accounts[TOKEN_PROGRAM]), metas, 3, &data, 1};
  AccountInfo *infos = HEAP;
  describe(accounts[VAULT], &infos[0]);
  describe(accounts[VAULT_AUTHORITY], &infos[1]);
  return sol_invoke_signed_c(&instruction, infos, 2, signer, 1);
}

static inline u64 transfer_to_pump(const u8 **accounts, const u8 *program_id) {
  u64 error = check_programs(accounts, program_id);
  if (error) return error;
  u64 seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_vault_authority(accounts[VAULT_AUTHORITY], seeds, seed, key_of(accounts[CREATOR]), program_id, &bump)) return INVALID_SEEDS;
  error = check_vaults(accounts);
  if (error) return error;

  u64 minimum = rent_exempt_minimum(TOKEN_ACCOUNT_LEN);
  if (!minimum) return INVALID_ARGUMENT;
  u64 held = lamports_of(accounts[VAULT]);
  if (held < minimum || lamports_of(accounts[PUMP_VAULT]) + held - minimum < rent_exempt_minimum(0)) return 0;

  SignerSeeds signer = {seeds, 3};
  error = close_vault(accounts, &signer);
  if (error) return error;
  error = create_token_account(
    accounts[VAULT], accounts[VAULT_AUTHORITY], accounts[WSOL_MINT], accounts[VAULT_AUTHORITY],
    accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM], accounts[SYSTEM_PROGRAM], &signer);
  if (error) return error;
  u64 all = lamports_of(accounts[VAULT_AUTHORITY]);
  return transfer(accounts[SYSTEM_PROGRAM], accounts[VAULT_AUTHORITY], accounts[PUMP_VAULT], all, &signer);
}

/* Checks the accounts of a sweep that do not depend on the pool's data. Returns an error code, or 0. */
static inline u64 check_sweep_accounts(const u8 **accounts, const u8 *program_id) {
  if (!is_signer(accounts[PAYER])) return MISSING_REQUIRED_SIGNATURE;
  if (!is_key(key_of(accounts[SWEEP_TOKEN_PROGRAM]), TOKEN_PROGRAM_ID)) return INCORRECT_PROGRAM_ID;
  if (!is_key(key_of(accounts[SWEEP_ASSOCIATED_TOKEN_PROGRAM]), ASSOCIATED_TOKEN_PROGRAM_ID)) return INCORRECT_PROGRAM_ID;
  if (!is_system_program(key_of(accounts[SWEEP_SYSTEM_PROGRAM]))) return INCORRECT_PROGRAM_ID;
  if (!same_key(key_of(accounts[SWEEP_PROGRAM]), program_id)) return INCORRECT_PROGRAM_ID;
  if (!is_event_authority(key_of(accounts[SWEEP_EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;
  if (!is_writable(accounts[PAYER])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[POOL])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[POOL_TOKENS])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[RECIPIENT_TOKENS])) return INVALID_ARGUMENT;

  /* "global_config" */
  u64 text[2];
  text[0] = 0x635f6c61626f6c67ULL;
  text[1] = 0x6769666e6fULL;
  u8 bump;
  Seed seed = {(const u8 *)text, 13};
  if (!is_derived(key_of(accounts[GLOBAL_CONFIG]), &seed, 1, program_id, &bump)) return INVALID_SEEDS;
  return 0;
}

/* Moves tokens from the pool, which signs, to the vault. */
static inline u64 sweep_tokens(const u8 **accounts, u64 fees) {
  if (read_u64(data_of(accounts[POOL_TOKENS]) + TOKEN_AMOUNT) < fees) return OVERFLOW;
  if (is_system_program(owner_of(accounts[RECIPIENT_TOKENS]))) {
    u64 error = create_token_account(
      accounts[RECIPIENT_TOKENS], accounts[RECIPIENT], accounts[QUOTE_MINT], accounts[PAYER],
      accounts[SWEEP_TOKEN_PROGRAM], accounts[SWEEP_ASSOCIATED_TOKEN_PROGRAM], accounts[SWEEP_SYSTEM_PROGRAM], 0);
    if (error) return error;
  }
  const u8 *data = data_of(accounts[POOL]);
  u64 text = 0x6c6f6f70ULL; /* "pool" */
  Seed seeds[6] = {
    {(const u8 *)&text, 4}, {data + POOL_INDEX, 2}, {data + POOL_CREATOR, 32},
    {data + POOL_BASE_MINT, 32}, {data + POOL_QUOTE_MINT, 32}, {data + POOL_BUMP, 1},
  };
  SignerSeeds signer = {seeds, 6};
  return transfer_tokens(accounts[SWEEP_TOKEN_PROGRAM], accounts[POOL_TOKENS], accounts[RECIPIENT_TOKENS], accounts[POOL], fees, &signer);
}

static inline u64 sweep(const u8 **accounts, const u8 *program_id) {
  u64 error = check_sweep_accounts(accounts, program_id);
  if (error) return error;
  const u8 *pool = accounts[POOL];
  if (!same_key(owner_of(pool), program_id)) return INVALID_ACCOUNT_OWNER;
  u64 len = data_len_of(pool);
  const u8 *data = data_of(pool);
  if (len < COIN_CREATOR || read_u64(data) != POOL_DISCRIMINATOR) return INVALID_ACCOUNT_DATA;
  if (!same_key(key_of(accounts[QUOTE_MINT]), data + POOL_QUOTE_MINT)) return INVALID_ARGUMENT;
  if (!same_key(key_of(accounts[POOL_TOKENS]), data + POOL_QUOTE_TOKENS)) return INVALID_ARGUMENT;

  /* What a short pool lacks reads as 0, and the System program's key is 0. */
  const u8 *creator = len < COIN_CREATOR + 32 ? key_of(accounts[SWEEP_SYSTEM_PROGRAM]) : data + COIN_CREATOR;
  u64 fees = len < POOL_LEN ? 0 : read_u64(data + CREATOR_FEES);
  u64 seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_vault_authority(accounts[RECIPIENT], seeds, seed, creator, program_id, &bump)) return INVALID_SEEDS;
  if (!is_token_account(accounts[RECIPIENT_TOKENS], accounts[RECIPIENT], accounts[QUOTE_MINT], accounts[SWEEP_TOKEN_PROGRAM], accounts[SWEEP_ASSOCIATED_TOKEN_PROGRAM])) return INVALID_SEEDS;

  if (len < POOL_LEN) {
    u64 minimum = rent_exempt_minimum(POOL_LEN);
    if (!minimum) return INVALID_ARGUMENT;
    error = top_up(pool, minimum, minimum, accounts[PAYER], accounts[SWEEP_SYSTEM_PROGRAM]);
    if (error) return error;
    grow(pool, POOL_LEN);
    write_u64(data + CREATOR_FEES, 0);
  }
  if (!fees) return 0;
  error = sweep_tokens(accounts, fees);
  if (error) return error;
  write_u64(data + CREATOR_FEES, 0);
  u64 reserves = read_u64(data + VIRTUAL_QUOTE_RESERVES) + fees;
  write_u64(data + VIRTUAL_QUOTE_RESERVES, reserves);
  if (reserves < fees) write_u64(data + VIRTUAL_QUOTE_RESERVES + 8, read_u64(data + VIRTUAL_QUOTE_RESERVES + 8) + 1);
  return emit(accounts[SWEEP_EVENT_AUTHORITY], program_id, SWEEP_EVENT);
}

u64 entrypoint(const u8 *input) {
  const u8 *accounts[SWEEP_ACCOUNTS];
  const u8 *data;
  if (read_u64(input) == 1) return accept_event(input);
  int is_sweep = read_u64(input) > TRANSFER_ACCOUNTS;
  u64 error = read_accounts(input, accounts, is_sweep ? SWEEP_ACCOUNTS : TRANSFER_ACCOUNTS, &data);
  if (error) return error;
  if (read_u64(data) != 8 || read_u64(data + 8) != (is_sweep ? SWEEP_CREATOR_FEE : TRANSFER_CREATOR_FEES_TO_PUMP)) return INVALID_INSTRUCTION_DATA;
  const u8 *program_id = data + 16;
  return is_sweep ? sweep(accounts, program_id) : transfer_to_pump(accounts, program_id);
}
