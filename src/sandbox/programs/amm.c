/*
 * A stand-in for the launch platform's AMM, for the sandbox's chain only.
 *
 * It has one instruction, `transfer_creator_fees_to_pump`, with the discriminator, the accounts and
 * the effect of the real one: it unwraps the SOL in the token account of the creator's vault authority
 * (seeds "creator_vault", creator) and moves it to the creator vault of the launch platform's main
 * program. Only the fee payer signs. If the token account holds less than its own rent, the instruction
 * succeeds and moves nothing.
 *
 * It unwraps as the real one does, by closing the token account and creating it again. This also moves
 * lamports that were sent to the token account but never wrapped.
 * https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/CREATOR_FEE_SHARING.md
 */
#include "sbf.h"

#define TRANSFER_CREATOR_FEES_TO_PUMP 0xf16ce5e45586348bULL /* 8b 34 86 55 e4 e5 6c f1 */

/* So11111111111111111111111111111111111111112 */
#define WSOL_MINT_ID {0x8481abfe57889b06ULL, 0x35c01846637f68fbULL, 0x553beb1adc39c4daULL, 0x0100000000f0a098ULL}
/* TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA */
#define TOKEN_PROGRAM_ID {0x93a165d7e1f6dd06ULL, 0xac79ebce46e1cbd9ULL, 0x91375b5fed85b41cULL, 0xa900ff7e85f58c3aULL}
/* ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL */
#define ASSOCIATED_TOKEN_PROGRAM_ID {0xf189244e8f25978cULL, 0x830d8e1429103dbbULL, 0x8410ffda99135a0bULL, 0x59f8e9dbd87b8e04ULL}

#define TOKEN_ACCOUNT_LEN 165
#define TOKEN_ACCOUNT_AMOUNT 64

enum {
  WSOL_MINT, TOKEN_PROGRAM, SYSTEM_PROGRAM, ASSOCIATED_TOKEN_PROGRAM, CREATOR,
  VAULT_AUTHORITY, VAULT, PUMP_VAULT, EVENT_AUTHORITY, PROGRAM, ACCOUNTS
};

/* Checks the accounts that are the same for every creator. Returns an error code, or 0. */
static inline u64 check_programs(const u8 **accounts, const u8 *program_id) {
  u64 mint[4] = WSOL_MINT_ID;
  u64 token[4] = TOKEN_PROGRAM_ID;
  u64 associated_token[4] = ASSOCIATED_TOKEN_PROGRAM_ID;
  if (!same_key(key_of(accounts[WSOL_MINT]), (const u8 *)mint)) return INVALID_ARGUMENT;
  if (!same_key(key_of(accounts[TOKEN_PROGRAM]), (const u8 *)token)) return INCORRECT_PROGRAM_ID;
  if (!is_system_program(key_of(accounts[SYSTEM_PROGRAM]))) return INCORRECT_PROGRAM_ID;
  if (!same_key(key_of(accounts[ASSOCIATED_TOKEN_PROGRAM]), (const u8 *)associated_token)) return INCORRECT_PROGRAM_ID;
  if (!same_key(key_of(accounts[PROGRAM]), program_id)) return INCORRECT_PROGRAM_ID;
  if (!is_event_authority(key_of(accounts[EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;
  return 0;
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
  Seed seeds[3] = {{(const u8 *)vault_seed, 13}, {key_of(accounts[CREATOR]), 32}, {0, 0}};
  if (!is_derived(key_of(accounts[PUMP_VAULT]), seeds, 2, (const u8 *)pump, &bump)) return INVALID_SEEDS;

  seeds[0].addr = key_of(accounts[VAULT_AUTHORITY]);
  seeds[0].len = 32;
  seeds[1].addr = key_of(accounts[TOKEN_PROGRAM]);
  seeds[2].addr = key_of(accounts[WSOL_MINT]);
  seeds[2].len = 32;
  if (!is_derived(key_of(accounts[VAULT]), seeds, 3, key_of(accounts[ASSOCIATED_TOKEN_PROGRAM]), &bump)) return INVALID_SEEDS;

  if (!is_writable(accounts[VAULT_AUTHORITY])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[VAULT])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[PUMP_VAULT])) return INVALID_ARGUMENT;
  if (!is_system_program(owner_of(accounts[PUMP_VAULT]))) return INVALID_ACCOUNT_OWNER;
  if (is_system_program(owner_of(accounts[VAULT]))) return UNINITIALIZED_ACCOUNT;
  if (!same_key(owner_of(accounts[VAULT]), key_of(accounts[TOKEN_PROGRAM]))) return INVALID_ACCOUNT_OWNER;
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
  AccountInfo infos[2];
  describe(accounts[VAULT], &infos[0]);
  describe(accounts[VAULT_AUTHORITY], &infos[1]);
  return sol_invoke_signed_c(&instruction, infos, 2, signer, 1);
}

/* Associated Token program, instruction 1: CreateIdempotent. The authority pays the rent. Programs need no AccountInfo. */
static inline u64 create_vault(const u8 **accounts, const SignerSeeds *signer) {
  u8 data = 1;
  AccountMeta metas[6] = {
    {key_of(accounts[VAULT_AUTHORITY]), 1, 1},
    {key_of(accounts[VAULT]), 1, 0},
    {key_of(accounts[VAULT_AUTHORITY]), 0, 0},
    {key_of(accounts[WSOL_MINT]), 0, 0},
    {key_of(accounts[SYSTEM_PROGRAM]), 0, 0},
    {key_of(accounts[TOKEN_PROGRAM]), 0, 0},
  };
  Instruction instruction = {key_of(accounts[ASSOCIATED_TOKEN_PROGRAM]), metas, 6, &data, 1};
  AccountInfo infos[3];
  describe(accounts[VAULT_AUTHORITY], &infos[0]);
  describe(accounts[VAULT], &infos[1]);
  describe(accounts[WSOL_MINT], &infos[2]);
  return sol_invoke_signed_c(&instruction, infos, 3, signer, 1);
}

u64 entrypoint(const u8 *input) {
  const u8 *accounts[ACCOUNTS];
  const u8 *data;
  u64 error = read_accounts(input, accounts, ACCOUNTS, &data);
  if (error) return error;
  if (read_u64(data) != 8 || read_u64(data + 8) != TRANSFER_CREATOR_FEES_TO_PUMP) return INVALID_INSTRUCTION_DATA;
  const u8 *program_id = data + 16;
  error = check_programs(accounts, program_id);
  if (error) return error;

  /* "creator_vault" */
  u64 authority_seed[2];
  authority_seed[0] = 0x5f726f7461657263ULL;
  authority_seed[1] = 0x746c756176ULL;
  u8 bump;
  Seed seeds[3] = {{(const u8 *)authority_seed, 13}, {key_of(accounts[CREATOR]), 32}, {&bump, 1}};
  if (!is_derived(key_of(accounts[VAULT_AUTHORITY]), seeds, 2, program_id, &bump)) return INVALID_SEEDS;
  error = check_vaults(accounts);
  if (error) return error;

  u64 minimum = rent_exempt_minimum(TOKEN_ACCOUNT_LEN);
  if (!minimum) return INVALID_ARGUMENT;
  if (read_u64(data_of(accounts[VAULT]) + TOKEN_ACCOUNT_AMOUNT) < minimum) return 0;

  u64 before = lamports_of(accounts[VAULT_AUTHORITY]);
  SignerSeeds signer = {seeds, 3};
  error = close_vault(accounts, &signer);
  if (error) return error;
  error = create_vault(accounts, &signer);
  if (error) return error;
  u64 unwrapped = lamports_of(accounts[VAULT_AUTHORITY]) - before;
  return transfer(accounts[SYSTEM_PROGRAM], accounts[VAULT_AUTHORITY], accounts[PUMP_VAULT], unwrapped, &signer);
}
