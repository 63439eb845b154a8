/*
 * A stand-in for the launch platform's program, for the sandbox's chain only. It has three instructions, with the
 * discriminators, the accounts and the effect of the real ones: src/chain/launchpad/platform-model.ts has the rules,
 * and tests hold both against it. Only the fee payer signs. All succeed and move nothing if there is nothing to move.
 *
 * `collect_creator_fee` moves everything above the rent-exempt minimum from the creator vault (seeds
 * "creator-vault", creator; owned by the System program, no data) to the creator. It has no effect if the creator would
 * stay below its own minimum. It refuses a sharing config.
 *
 * `sweep_creator_fee` moves the creator fee that waits on a coin's bonding curve to the creator vault of the curve's
 * creator or, if the coin trades in a currency other than SOL, to that vault's token account. The payer pays to grow
 * a curve of an older layout, for what the curve lacks, a whole rent-exempt minimum for a vault that is below it, or to
 * create the token account.
 * https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/SWEEP_FEES.md
 *
 * `distribute_creator_fees` divides everything above the rent-exempt minimum in the creator vault of a sharing config
 * among the config's shareholders, who follow the other accounts in the config's order. Each part is rounded down; the
 * rest stays in the vault. It has no effect if a shareholder would stay below its rent-exempt minimum. The fees program owns the config
 * (seeds "sharing-config", mint) of a coin, which replaces the coin's creator. Fees that wait in a pool are no concern of
 * this instruction.
 * https://github.com/pump-fun/pump-public-docs/blob/main/docs/instructions/CREATOR_FEE_SHARING.md
 *
 * Unlike the real program's, its events have no fields, its compute units are fewer, and it has its own codes for
 * accounts that no caller of this service passes. It refuses the accounts of more than 10 shareholders.
 */
#include "sbf.h"

#define COLLECT_CREATOR_FEE 0x84db1cc67b561614ULL /* 14 16 56 7b c6 1c db 84 */
#define DISTRIBUTE_CREATOR_FEES 0x51f7ce79006772a5ULL /* a5 72 67 00 79 ce f7 51 */

/* The program's errors, numbered as in its IDL. */
#define CREATOR_VAULT_MIGRATED_TO_SHARING_CONFIG 6050
#define SHARING_CONFIG_NOT_ACTIVE 6051
#define EXECUTABLE_RECIPIENT 6052
#define CREATOR_MISMATCH 6053
#define OVERFLOW 6024
#define NOT_ENOUGH_SHAREHOLDERS 6027
#define SHAREHOLDERS_MISMATCH 6054
#define INVALID_SHARE 6055
#define UNSUPPORTED_QUOTE_MINT 6063
#define FEES_NOT_SWEPT 6095

/* The discriminators of its events. */
#define COLLECT_EVENT 0xaf0cbf0e017f027aULL
#define SWEEP_EVENT 0x2b487a11bd4d2b74ULL
#define DISTRIBUTE_EVENT 0x28cab304708137a5ULL

/* The account BondingCurve: 17 b7 f8 37 60 d8 ac 60, and the offsets of its fields. Older curves are shorter. */
#define BONDING_CURVE 0x60acd86037f8b717ULL
#define REAL_QUOTE_RESERVES 32
#define CURVE_CREATOR 49
#define CURVE_QUOTE_MINT 83
#define CREATOR_FEE 125
#define PROTOCOL_FEES 133
#define CURVE_LEN 166
/* A shorter curve counts as having no fees. */
#define LEAST_LEN_WITH_FEES 141

/* The account SharingConfig: d8 4a 09 00 38 8c 5d 4b, and the offsets of its fields. A shareholder is a key and a u16. */
#define SHARING_CONFIG_DISCRIMINATOR 0x4b5d8c3800094ad8ULL
#define CONFIG_STATUS 10
#define CONFIG_ACTIVE 1
#define CONFIG_MINT 11
#define CONFIG_COUNT 76
#define CONFIG_SHAREHOLDERS 80
#define SHAREHOLDER_LEN 34
#define MAX_SHAREHOLDERS 10

#define ALL_BPS 10000

/* pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ */
#define FEES_PROGRAM_ID 0x568e5a05a9ff350cULL, 0x27155607bcf7a88dULL, 0x00401fa42cc9f14cULL, 0x707cc214a46a519cULL

/* "creator-vault" and "bonding-curve" */
#define CREATOR_VAULT_NAME 0x2d726f7461657263ULL, 0x746c756176ULL
#define CURVE_NAME 0x2d676e69646e6f62ULL, 0x6576727563ULL

enum { CREATOR, CREATOR_VAULT, COLLECT_SYSTEM_PROGRAM, COLLECT_EVENT_AUTHORITY, COLLECT_PROGRAM, COLLECT_ACCOUNTS };

enum {
  PAYER, GLOBAL, BASE_MINT, QUOTE_MINT, TOKEN_PROGRAM, ASSOCIATED_TOKEN_PROGRAM, SYSTEM_PROGRAM,
  CURVE, CURVE_TOKENS, RECIPIENT, RECIPIENT_TOKENS, EVENT_AUTHORITY, PROGRAM, SWEEP_ACCOUNTS
};

/* The shareholders follow. */
enum {
  MINT, SHARED_CURVE, SHARING_CONFIG, SHARED_VAULT, DISTRIBUTE_SYSTEM_PROGRAM, DISTRIBUTE_EVENT_AUTHORITY,
  DISTRIBUTE_PROGRAM, DISTRIBUTE_ACCOUNTS
};

/*
 * Whether `address` has the seeds of a name of 13 bytes, given as two words, and a key. Fills `seeds`, whose first one is
 * stored in `seed`, and `bump` to sign with.
 */
static inline int is_named(
    const u8 *address, u64 name, u64 rest_of_name, const u8 *key, const u8 *program_id, Seed *seeds, u64 *seed, u8 *bump) {
  seed[0] = name;
  seed[1] = rest_of_name;
  seeds[0].addr = (const u8 *)seed;
  seeds[0].len = 13;
  seeds[1].addr = key;
  seeds[1].len = 32;
  seeds[2].addr = bump;
  seeds[2].len = 1;
  return is_derived(key_of(address), seeds, 2, program_id, bump);
}

/* Both token programs' mints will do. Returns an error code, or 0. */
static inline u64 check_mint(const u8 *mint) {
  const u8 *owner = owner_of(mint);
  return check_owner(mint, is_key(owner, TOKEN_PROGRAM_ID) || is_key(owner, TOKEN_2022_PROGRAM_ID));
}

static inline u64 collect(const u8 **accounts, const u8 *program_id) {
  u64 seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_named(accounts[CREATOR_VAULT], CREATOR_VAULT_NAME, key_of(accounts[CREATOR]), program_id, seeds, seed, &bump)) return INVALID_SEEDS;
  if (!is_event_authority(key_of(accounts[COLLECT_EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;

  if (is_key(owner_of(accounts[CREATOR]), FEES_PROGRAM_ID)) return CREATOR_VAULT_MIGRATED_TO_SHARING_CONFIG;
  if (!is_system_program(owner_of(accounts[CREATOR_VAULT]))) return INVALID_ACCOUNT_OWNER;
  if (!is_system_program(key_of(accounts[COLLECT_SYSTEM_PROGRAM]))) return INVALID_ARGUMENT;
  if (!same_key(key_of(accounts[COLLECT_PROGRAM]), program_id)) return INVALID_ARGUMENT;

  u64 minimum = rent_exempt_minimum(0);
  if (!minimum) return INVALID_ARGUMENT;
  u64 held = lamports_of(accounts[CREATOR_VAULT]);
  if (held <= minimum || is_executable(accounts[CREATOR])) return 0;
  u64 needed = rent_exempt_minimum(data_len_of(accounts[CREATOR]));
  if (lamports_of(accounts[CREATOR]) + held - minimum < needed) return 0;

  SignerSeeds signer = {seeds, 3};
  u64 error = transfer(accounts[COLLECT_SYSTEM_PROGRAM], accounts[CREATOR_VAULT], accounts[CREATOR], held - minimum, &signer);
  return error ? error : emit(accounts[COLLECT_EVENT_AUTHORITY], program_id, COLLECT_EVENT);
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
  return check_mint(accounts[BASE_MINT]);
}

/* Moves lamports from the curve to the vault. */
static inline u64 sweep_lamports(const u8 **accounts, u64 fee) {
  u64 minimum = rent_exempt_minimum(0);
  if (!minimum) return INVALID_ARGUMENT;
  if (!is_system_program(owner_of(accounts[RECIPIENT]))) return INVALID_ACCOUNT_OWNER;
  if (lamports_of(accounts[RECIPIENT]) < minimum) {
    u64 error = transfer(accounts[SYSTEM_PROGRAM], accounts[PAYER], accounts[RECIPIENT], minimum, 0);
    if (error) return error;
  }
  /* The runtime checks that the curve stays rent-exempt. */
  u64 held = lamports_of(accounts[CURVE]);
  if (held < fee) return ARITHMETIC_OVERFLOW;
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

/* Whether the coin trades in SOL: its curve names no other mint, or is too old to name one. */
static inline int is_in_sol(const u8 *curve) {
  const u8 *quote_mint = data_of(curve) + CURVE_QUOTE_MINT;
  return data_len_of(curve) < CURVE_QUOTE_MINT + 32 || is_system_program(quote_mint) || is_key(quote_mint, WSOL_MINT_ID);
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
  u64 fee = len < LEAST_LEN_WITH_FEES ? 0 : read_u64(data + CREATOR_FEE);
  u64 protocol_fees = len < LEAST_LEN_WITH_FEES ? 0 : read_u64(data + PROTOCOL_FEES);

  int in_sol = is_in_sol(curve);
  const u8 *given_mint = key_of(accounts[QUOTE_MINT]);
  if (in_sol ? !is_key(given_mint, WSOL_MINT_ID) : !same_key(given_mint, data + CURVE_QUOTE_MINT)) return INVALID_ARGUMENT;

  u64 seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_named(accounts[RECIPIENT], CREATOR_VAULT_NAME, creator, program_id, seeds, seed, &bump)) return INVALID_SEEDS;
  if (!is_token_account(accounts[CURVE_TOKENS], curve, accounts[QUOTE_MINT], accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM])) return INVALID_SEEDS;
  if (!is_token_account(accounts[RECIPIENT_TOKENS], accounts[RECIPIENT], accounts[QUOTE_MINT], accounts[TOKEN_PROGRAM], accounts[ASSOCIATED_TOKEN_PROGRAM])) return INVALID_SEEDS;
  if (!is_named(curve, CURVE_NAME, key_of(accounts[BASE_MINT]), program_id, seeds, seed, &bump)) return INVALID_SEEDS;

  u64 minimum = rent_exempt_minimum(len < CURVE_LEN ? CURVE_LEN : len);
  if (!minimum) return INVALID_ARGUMENT;
  u64 reserved = in_sol ? read_u64(data + REAL_QUOTE_RESERVES) + fee + protocol_fees : 0;
  error = top_up(curve, minimum + reserved, minimum, accounts[PAYER], accounts[SYSTEM_PROGRAM]);
  if (error) return error;
  grow(curve, CURVE_LEN);
  write_u64(data + CREATOR_FEE, 0);
  if (!fee) return 0;
  SignerSeeds signer = {seeds, 3};
  error = in_sol ? sweep_lamports(accounts, fee) : sweep_tokens(accounts, fee, &signer);
  return error ? error : emit(accounts[EVENT_AUTHORITY], program_id, SWEEP_EVENT);
}

/* By assignment: a syscall takes the key's address, so an initializer would become constant data. */
static inline void set_key(u64 *key, u64 first, u64 second, u64 third, u64 fourth) {
  key[0] = first;
  key[1] = second;
  key[2] = third;
  key[3] = fourth;
}

/* Checks the coin's sharing config. Returns an error code, or 0. */
static inline u64 check_config(const u8 *config, const u8 *mint) {
  u64 seed[2], fees_program[4];
  u8 bump;
  /* "sharing-config" */
  seed[0] = 0x2d676e6972616873ULL;
  seed[1] = 0x6769666e6f63ULL;
  set_key(fees_program, FEES_PROGRAM_ID);
  Seed seeds[2] = {{(const u8 *)seed, 14}, {mint, 32}};
  if (!is_derived(key_of(config), seeds, 2, (const u8 *)fees_program, &bump)) return INVALID_SEEDS;
  if (!same_key(owner_of(config), (const u8 *)fees_program)) return INVALID_ACCOUNT_OWNER;
  const u8 *data = data_of(config);
  if (data_len_of(config) < CONFIG_SHAREHOLDERS) return INVALID_ACCOUNT_DATA;
  if (read_u64(data) != SHARING_CONFIG_DISCRIMINATOR) return INVALID_ACCOUNT_DATA;
  if (!same_key(data + CONFIG_MINT, mint)) return INVALID_ACCOUNT_DATA;
  return data[CONFIG_STATUS] == CONFIG_ACTIVE ? 0 : SHARING_CONFIG_NOT_ACTIVE;
}

/* The config's entry of a shareholder: its key, and its part in ten-thousandths. */
static inline const u8 *entry_of(const u8 *config, u64 i) {
  return data_of(config) + CONFIG_SHAREHOLDERS + i * SHAREHOLDER_LEN;
}
static inline u64 bps_of(const u8 *config, u64 i) { return *(const unsigned short *)(entry_of(config, i) + 32); }

/* Checks that the first `count` of the given accounts are the config's shareholders. Returns an error code, or 0. */
static inline u64 check_shareholders(const u8 **shareholders, u64 count, const u8 *config) {
  if (data_len_of(config) < CONFIG_SHAREHOLDERS + count * SHAREHOLDER_LEN) return INVALID_ACCOUNT_DATA;
  for (u64 i = 0; i < count; i++) {
    const u8 *shareholder = shareholders[i];
    if (!same_key(key_of(shareholder), entry_of(config, i))) return SHAREHOLDERS_MISMATCH;
    if (is_executable(shareholder)) return EXECUTABLE_RECIPIENT;
    if (!is_writable(shareholder)) return INVALID_ARGUMENT;
    if (!bps_of(config, i)) return INVALID_SHARE;
  }
  return 0;
}

/* Whether `amount` raises each shareholder to its rent-exempt minimum by its part. */
static inline int is_enough(u64 amount, const u8 **shareholders, u64 count, const u8 *config) {
  for (u64 i = 0; i < count; i++) {
    u64 needed = rent_exempt_minimum(data_len_of(shareholders[i]));
    u64 held = lamports_of(shareholders[i]);
    if (held < needed && amount * bps_of(config, i) < (needed - held) * ALL_BPS) return 0;
  }
  return 1;
}

static inline u64 distribute(const u8 **accounts, u64 given, const u8 *program_id) {
  const u8 *curve = accounts[SHARED_CURVE], *config = accounts[SHARING_CONFIG], *vault = accounts[SHARED_VAULT];
  const u8 *data = data_of(curve);
  const u8 **shareholders = accounts + DISTRIBUTE_ACCOUNTS;
  u64 seed[2];
  u8 bump;
  Seed seeds[3];
  if (!is_named(curve, CURVE_NAME, key_of(accounts[MINT]), program_id, seeds, seed, &bump)) return INVALID_SEEDS;
  if (!same_key(owner_of(curve), program_id)) return INVALID_ACCOUNT_OWNER;
  if (data_len_of(curve) < CURVE_CREATOR + 32 || read_u64(data) != BONDING_CURVE) return INVALID_ACCOUNT_DATA;
  u64 error = check_mint(accounts[MINT]);
  if (error) return error;
  error = check_config(config, key_of(accounts[MINT]));
  if (error) return error;
  if (!is_named(vault, CREATOR_VAULT_NAME, data + CURVE_CREATOR, program_id, seeds, seed, &bump)) return INVALID_SEEDS;
  if (!is_event_authority(key_of(accounts[DISTRIBUTE_EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;
  if (!is_system_program(key_of(accounts[DISTRIBUTE_SYSTEM_PROGRAM]))) return INCORRECT_PROGRAM_ID;
  if (!same_key(key_of(accounts[DISTRIBUTE_PROGRAM]), program_id)) return INCORRECT_PROGRAM_ID;
  if (!is_writable(vault)) return INVALID_ARGUMENT;
  if (!is_system_program(owner_of(vault))) return INVALID_ACCOUNT_OWNER;
  if (!same_key(data + CURVE_CREATOR, key_of(config))) return CREATOR_MISMATCH;
  if (!is_in_sol(curve)) return UNSUPPORTED_QUOTE_MINT;
  if (data_len_of(curve) >= LEAST_LEN_WITH_FEES && read_u64(data + CREATOR_FEE)) return FEES_NOT_SWEPT;
  u64 count = *(const u32 *)(data_of(config) + CONFIG_COUNT);
  if (given < count) return NOT_ENOUGH_SHAREHOLDERS;
  error = check_shareholders(shareholders, count, config);
  if (error) return error;

  u64 minimum = rent_exempt_minimum(0);
  if (!minimum) return INVALID_ARGUMENT;
  u64 held = lamports_of(vault);
  u64 amount = held > minimum ? held - minimum : 0;
  if (amount > ~0ULL / ALL_BPS) return OVERFLOW;
  if (!is_enough(amount, shareholders, count, config)) return 0;
  SignerSeeds signer = {seeds, 3};
  for (u64 i = 0; i < count; i++) {
    u64 part = amount * bps_of(config, i) / ALL_BPS;
    if (!part) continue;
    error = transfer(accounts[DISTRIBUTE_SYSTEM_PROGRAM], vault, shareholders[i], part, &signer);
    if (error) return error;
  }
  return emit(accounts[DISTRIBUTE_EVENT_AUTHORITY], program_id, DISTRIBUTE_EVENT);
}

u64 entrypoint(const u8 *input) {
  const u8 **accounts = ACCOUNTS;
  const u8 *data;
  u64 count = read_u64(input);
  if (count == 1) return accept_event(input);
  /* Only a distribution has so many. */
  if (count > DISTRIBUTE_ACCOUNTS + MAX_SHAREHOLDERS) return SHAREHOLDERS_MISMATCH;
  u64 error = read_accounts(input, accounts, count, &data);
  if (error) return error;
  if (read_u64(data) != 8) return INVALID_INSTRUCTION_DATA;
  u64 discriminator = read_u64(data + 8);
  const u8 *program_id = data + 16;
  if (discriminator == DISTRIBUTE_CREATOR_FEES) {
    if (count < DISTRIBUTE_ACCOUNTS) return NOT_ENOUGH_ACCOUNT_KEYS;
    return distribute(accounts, count - DISTRIBUTE_ACCOUNTS, program_id);
  }
  int is_sweep = count > COLLECT_ACCOUNTS;
  if (count != (is_sweep ? SWEEP_ACCOUNTS : COLLECT_ACCOUNTS)) return NOT_ENOUGH_ACCOUNT_KEYS;
  if (discriminator != (is_sweep ? SWEEP_CREATOR_FEE : COLLECT_CREATOR_FEE)) return INVALID_INSTRUCTION_DATA;
  return is_sweep ? sweep(accounts, program_id) : collect(accounts, program_id);
}
