/*
 * A stand-in for the launch platform's program, for the sandbox's chain only. It has two instructions, with the
 * discriminators, the accounts and the effect of the real ones. Only the fee payer signs. Both succeed and move
 * nothing if there is nothing to move.
 *
 * `collect_creator_fee` moves everything above the rent-exempt minimum from the creator vault (seeds
 * "creator-vault", creator; owned by the System program, no data) to the creator.
 *
 * `sweep_creator_fee` moves the creator fee that waits on a coin's bonding curve to the creator vault of the curve's
 * creator or, if the coin trades in a currency other than SOL, to that vault's token account. The payer pays to grow
 * a curve of an older layout, to fund the vault up to its rent-exempt minimum, or to create the token account.
 * https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/SWEEP_FEES.md
 *
 * Unlike the real program it emits no events.
 */
#include "sbf.h"

#define COLLECT_CREATOR_FEE 0x84db1cc67b561614ULL /* 14 16 56 7b c6 1c db 84 */

/* The account BondingCurve: 17 b7 f8 37 60 d8 ac 60, and the offsets of its fields. Older curves are shorter. */
#define BONDING_CURVE 0x60acd86037f8b717ULL
#define REAL_QUOTE_RESERVES 32
#define CURVE_CREATOR 49
#define CURVE_QUOTE_MINT 83
#define CREATOR_FEE 125
#define PROTOCOL_FEES 133
#define CURVE_LEN 166

enum { CREATOR, CREATOR_VAULT, COLLECT_SYSTEM_PROGRAM, COLLECT_EVENT_AUTHORITY, COLLECT_PROGRAM, COLLECT_ACCOUNTS };

enum {
  PAYER, GLOBAL, BASE_MINT, QUOTE_MINT, TOKEN_PROGRAM, ASSOCIATED_TOKEN_PROGRAM, SYSTEM_PROGRAM,
  CURVE, CURVE_TOKENS, RECIPIENT, RECIPIENT_TOKENS, EVENT_AUTHORITY, PROGRAM, SWEEP_ACCOUNTS
};

/* Seeds "creator-vault", creator. Fills `seeds`, whose first one is stored in `seed`, and `bump` to sign with. */
static inline int is_creator_vault(const u8 *vault, Seed *seeds, u64 *seed, const u8 *creator, const u8 *program_id, u8 *bump) {
  seed[0] = 0x2d726f7461657263ULL;
  seed[1] = 0x746c756176ULL;
  seeds[0].addr = (const u8 *)seed;
  seeds[0].len = 13;
  seeds[1].addr = creator;
  seeds[1].len = 32;
  seeds[2].addr = bump;
  seeds[2].len = 1;
  return is_derived(key_of(vault), seeds, 2, program_id, bump);
}

static inline u64 collect(const u8 **accounts, const u8 *program_id) {
  u64 vault_seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_creator_vault(accounts[CREATOR_VAULT], seeds, vault_seed, key_of(accounts[CREATOR]), program_id, &bump)) return INVALID_SEEDS;
  if (!is_event_authority(key_of(accounts[COLLECT_EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;

  if (!is_system_program(owner_of(accounts[CREATOR_VAULT]))) return INVALID_ACCOUNT_OWNER;
  if (!is_system_program(key_of(accounts[COLLECT_SYSTEM_PROGRAM]))) return INVALID_ARGUMENT;
  if (!same_key(key_of(accounts[COLLECT_PROGRAM]), program_id)) return INVALID_ARGUMENT;

  u64 minimum = rent_exempt_minimum(0);
  if (!minimum) return INVALID_ARGUMENT;
  u64 held = lamports_of(accounts[CREATOR_VAULT]);
  if (held <= minimum) return 0;

  SignerSeeds signer = {seeds, 3};
  return transfer(accounts[COLLECT_SYSTEM_PROGRAM], accounts[CREATOR_VAULT], accounts[CREATOR], held - minimum, &signer);
}

/* Checks the accounts of a sweep that do not depend on the curve's data. Returns an error code, or 0. */
static inline u64 check_sweep_accounts(const u8 **accounts, const u8 *program_id) {
  if (!is_signer(accounts[PAYER])) return MISSING_REQUIRED_SIGNATURE;
  if (!is_key(key_of(accounts[TOKEN_PROGRAM]), TOKEN_PROGRAM_ID)) return INCORRECT_PROGRAM_ID;
  if (!is_key(key_of(accounts[ASSOCIATED_TOKEN_PROGRAM]), ASSOCIATED_TOKEN_PROGRAM_ID)) return INCORRECT_PROGRAM_ID;
  if (!is_system_program(key_of(accounts[SYSTEM_PROGRAM]))) return INCORRECT_PROGRAM_ID;
  if (!same_key(key_of(accounts[PROGRAM]), program_id)) return INCORRECT_PROGRAM_ID;
  if (!is_event_authority(key_of(accounts[EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;
  if (!is_writable(accounts[PAYER])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[CURVE])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[CURVE_TOKENS])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[RECIPIENT])) return INVALID_ARGUMENT;
  if (!is_writable(accounts[RECIPIENT_TOKENS])) return INVALID_ARGUMENT;

  /* "global" */
  u64 text = 0x6c61626f6c67ULL;
  u8 bump;
  Seed seed = {(const u8 *)&text, 6};
  if (!is_derived(key_of(accounts[GLOBAL]), &seed, 1, program_id, &bump)) return INVALID_SEEDS;
  return 0;
}

/* Moves lamports from the curve to the vault. */
static inline u64 sweep_lamports(const u8 **accounts, u64 fee) {
  u64 minimum = rent_exempt_minimum(0);
  if (!minimum) return INVALID_ARGUMENT;
  if (!is_system_program(owner_of(accounts[RECIPIENT]))) return INVALID_ACCOUNT_OWNER;
  u64 error = top_up(accounts[RECIPIENT], minimum, accounts[PAYER], accounts[SYSTEM_PROGRAM]);
  if (error) return error;
  /* The runtime checks that the curve stays rent-exempt. */
  u64 held = lamports_of(accounts[CURVE]);
  if (held < fee) return INSUFFICIENT_FUNDS;
  write_u64(accounts[CURVE] + 72, held - fee);
  write_u64(accounts[RECIPIENT] + 72, lamports_of(accounts[RECIPIENT]) + fee);
  return 0;
}

/* Moves tokens from the curve's token account to the vault's. */
static inline u64 sweep_tokens(const u8 **accounts, u64 fee, const SignerSeeds *signer) {
  u64 error = create_token_account(
    accounts[RECIPIENT_TOKENS], accounts[RECIPIENT], accounts[QUOTE_MINT], accounts[PAYER],
    accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM], accounts[SYSTEM_PROGRAM], 0);
  if (error) return error;
  return transfer_tokens(accounts[TOKEN_PROGRAM], accounts[CURVE_TOKENS], accounts[RECIPIENT_TOKENS], accounts[CURVE], fee, signer);
}

static inline u64 sweep(const u8 **accounts, const u8 *program_id) {
  u64 error = check_sweep_accounts(accounts, program_id);
  if (error) return error;
  const u8 *curve = accounts[CURVE];
  if (!same_key(owner_of(curve), program_id)) return INVALID_ACCOUNT_OWNER;
  u64 len = data_len_of(curve);
  const u8 *data = data_of(curve);
  if (len < CURVE_CREATOR || read_u64(data) != BONDING_CURVE) return INVALID_ACCOUNT_DATA;

  /* What a short curve lacks reads as 0, and the System program's key is 0. */
  const u8 *zero = key_of(accounts[SYSTEM_PROGRAM]);
  const u8 *creator = len < CURVE_CREATOR + 32 ? zero : data + CURVE_CREATOR;
  const u8 *quote_mint = len < CURVE_QUOTE_MINT + 32 ? zero : data + CURVE_QUOTE_MINT;
  u64 fee = len < CREATOR_FEE + 8 ? 0 : read_u64(data + CREATOR_FEE);
  u64 protocol_fees = len < PROTOCOL_FEES + 8 ? 0 : read_u64(data + PROTOCOL_FEES);

  int in_sol = same_key(quote_mint, zero) || is_key(quote_mint, WSOL_MINT_ID);
  const u8 *given_mint = key_of(accounts[QUOTE_MINT]);
  if (in_sol ? !is_key(given_mint, WSOL_MINT_ID) : !same_key(given_mint, quote_mint)) return INVALID_ARGUMENT;

  u64 seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_creator_vault(accounts[RECIPIENT], seeds, seed, creator, program_id, &bump)) return INVALID_SEEDS;
  if (!is_token_account(accounts[CURVE_TOKENS], curve, accounts[QUOTE_MINT], accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM])) return INVALID_SEEDS;
  if (!is_token_account(accounts[RECIPIENT_TOKENS], accounts[RECIPIENT], accounts[QUOTE_MINT], accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM])) return INVALID_SEEDS;
  /* "bonding-curve", mint */
  seed[0] = 0x2d676e69646e6f62ULL;
  seed[1] = 0x6576727563ULL;
  seeds[1].addr = key_of(accounts[BASE_MINT]);
  if (!is_derived(key_of(curve), seeds, 2, program_id, &bump)) return INVALID_SEEDS;

  u64 reserved = in_sol ? read_u64(data + REAL_QUOTE_RESERVES) + fee + protocol_fees : 0;
  error = grow(curve, CURVE_LEN, reserved, accounts[PAYER], accounts[SYSTEM_PROGRAM]);
  if (error || !fee) return error;
  SignerSeeds signer = {seeds, 3};
  error = in_sol ? sweep_lamports(accounts, fee) : sweep_tokens(accounts, fee, &signer);
  if (error) return error;
  write_u64(data + CREATOR_FEE, 0);
  return 0;
}

u64 entrypoint(const u8 *input) {
  const u8 *accounts[SWEEP_ACCOUNTS];
  const u8 *data;
  int is_sweep = read_u64(input) > COLLECT_ACCOUNTS;
  u64 error = read_accounts(input, accounts, is_sweep ? SWEEP_ACCOUNTS : COLLECT_ACCOUNTS, &data);
  if (error) return error;
  if (read_u64(data) != 8 || read_u64(data + 8) != (is_sweep ? SWEEP_CREATOR_FEE : COLLECT_CREATOR_FEE)) return INVALID_INSTRUCTION_DATA;
  const u8 *program_id = data + 16;
  return is_sweep ? sweep(accounts, program_id) : collect(accounts, program_id);
}
