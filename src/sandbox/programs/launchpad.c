/*
 * A stand-in for the launch platform's program, for the sandbox's chain only.
 *
 * It has one instruction, `collect_creator_fee`, with the discriminator, the accounts and the effect
 * of the real one: it moves everything above the rent-exempt minimum from the creator vault (seeds
 * "creator-vault", creator; owned by the System program, no data) to the creator. Only the fee payer
 * signs. If the vault holds no more than the minimum, the instruction succeeds and moves nothing.
 */
#include "sbf.h"

#define COLLECT_CREATOR_FEE 0x84db1cc67b561614ULL /* 14 16 56 7b c6 1c db 84 */

enum { CREATOR, CREATOR_VAULT, SYSTEM_PROGRAM, EVENT_AUTHORITY, PROGRAM, ACCOUNTS };

u64 entrypoint(const u8 *input) {
  const u8 *accounts[ACCOUNTS];
  const u8 *data;
  u64 error = read_accounts(input, accounts, ACCOUNTS, &data);
  if (error) return error;
  if (read_u64(data) != 8 || read_u64(data + 8) != COLLECT_CREATOR_FEE) return INVALID_INSTRUCTION_DATA;
  const u8 *program_id = data + 16;

  /* "creator-vault" */
  u64 vault_seed[2];
  vault_seed[0] = 0x2d726f7461657263ULL;
  vault_seed[1] = 0x746c756176ULL;
  u8 bump;
  Seed seeds[3] = {{(const u8 *)vault_seed, 13}, {key_of(accounts[CREATOR]), 32}, {&bump, 1}};
  if (!is_derived(key_of(accounts[CREATOR_VAULT]), seeds, 2, program_id, &bump)) return INVALID_SEEDS;
  if (!is_event_authority(key_of(accounts[EVENT_AUTHORITY]), program_id)) return INVALID_SEEDS;

  if (!is_system_program(owner_of(accounts[CREATOR_VAULT]))) return INVALID_ACCOUNT_OWNER;
  if (!is_system_program(key_of(accounts[SYSTEM_PROGRAM]))) return INVALID_ARGUMENT;
  if (!same_key(key_of(accounts[PROGRAM]), program_id)) return INVALID_ARGUMENT;

  u64 minimum = rent_exempt_minimum(0);
  if (!minimum) return INVALID_ARGUMENT;
  u64 held = lamports_of(accounts[CREATOR_VAULT]);
  if (held <= minimum) return 0;

  SignerSeeds signer = {seeds, 3};
  return transfer(accounts[SYSTEM_PROGRAM], accounts[CREATOR_VAULT], accounts[CREATOR], held - minimum, &signer);
}
