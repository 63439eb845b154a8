/* eslint-disable */
/* prettier-ignore */

export type introspection_types = {
    'Balance': { kind: 'OBJECT'; name: 'Balance'; fields: { 'pda': { name: 'pda'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'pdaLamports': { name: 'pdaLamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; 'total': { name: 'total'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'totalLamports': { name: 'totalLamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; 'vault': { name: 'vault'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'vaultLamports': { name: 'vaultLamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; 'withdrawable': { name: 'withdrawable'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'withdrawableLamports': { name: 'withdrawableLamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; }; };
    'Boolean': unknown;
    'Coin': { kind: 'OBJECT'; name: 'Coin'; fields: { 'amount': { name: 'amount'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'collectable': { name: 'collectable'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Boolean'; ofType: null; }; } }; 'mint': { name: 'mint'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'quoteMint': { name: 'quoteMint'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'reason': { name: 'reason'; type: { kind: 'ENUM'; name: 'UncollectableReason'; ofType: null; } }; 'stage': { name: 'stage'; type: { kind: 'ENUM'; name: 'CoinStage'; ofType: null; } }; 'waiting': { name: 'waiting'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; }; };
    'CoinStage': { name: 'CoinStage'; enumValues: 'CURVE' | 'POOL'; };
    'CollectResult': { kind: 'OBJECT'; name: 'CollectResult'; fields: { 'collected': { name: 'collected'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'collectedLamports': { name: 'collectedLamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; 'error': { name: 'error'; type: { kind: 'ENUM'; name: 'ErrorCode'; ofType: null; } }; 'message': { name: 'message'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'newBalance': { name: 'newBalance'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'newBalanceLamports': { name: 'newBalanceLamports'; type: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; } }; 'remaining': { name: 'remaining'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'remainingLamports': { name: 'remainingLamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; 'success': { name: 'success'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Boolean'; ofType: null; }; } }; 'txSignature': { name: 'txSignature'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'wallet': { name: 'wallet'; type: { kind: 'OBJECT'; name: 'Wallet'; ofType: null; } }; }; };
    'ErrorCode': { name: 'ErrorCode'; enumValues: 'HANDLE_REQUIRED' | 'INVALID_HANDLE' | 'SOCIAL_NOT_FOUND' | 'SOCIAL_RATE_LIMITED' | 'SOCIAL_API_UNAVAILABLE' | 'SERVICE_BUSY' | 'LOOKUP_FAILED' | 'INVALID_SOCIAL_ID' | 'NOTHING_TO_COLLECT' | 'INSUFFICIENT_FUNDS' | 'COLLECT_FAILED' | 'RATE_LIMITED' | 'INVALID_MINT' | 'NOT_FOUND' | 'METHOD_NOT_ALLOWED'; };
    'ID': unknown;
    'Int': unknown;
    'Lamports': unknown;
    'Mutation': { kind: 'OBJECT'; name: 'Mutation'; fields: { 'collect': { name: 'collect'; type: { kind: 'OBJECT'; name: 'CollectResult'; ofType: null; } }; 'collectMany': { name: 'collectMany'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'LIST'; name: never; ofType: { kind: 'OBJECT'; name: 'CollectResult'; ofType: null; }; }; } }; }; };
    'PageInfo': { kind: 'OBJECT'; name: 'PageInfo'; fields: { 'endCursor': { name: 'endCursor'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'hasNextPage': { name: 'hasNextPage'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Boolean'; ofType: null; }; } }; 'hasPreviousPage': { name: 'hasPreviousPage'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Boolean'; ofType: null; }; } }; 'startCursor': { name: 'startCursor'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; }; };
    'Profile': { kind: 'OBJECT'; name: 'Profile'; fields: { 'followers': { name: 'followers'; type: { kind: 'SCALAR'; name: 'Int'; ofType: null; } }; 'name': { name: 'name'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'pictureUrl': { name: 'pictureUrl'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'verified': { name: 'verified'; type: { kind: 'SCALAR'; name: 'Boolean'; ofType: null; } }; }; };
    'Query': { kind: 'OBJECT'; name: 'Query'; fields: { 'wallet': { name: 'wallet'; type: { kind: 'OBJECT'; name: 'Wallet'; ofType: null; } }; 'walletById': { name: 'walletById'; type: { kind: 'OBJECT'; name: 'Wallet'; ofType: null; } }; 'wallets': { name: 'wallets'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'LIST'; name: never; ofType: { kind: 'OBJECT'; name: 'Wallet'; ofType: null; }; }; } }; }; };
    'String': unknown;
    'Subscription': { kind: 'OBJECT'; name: 'Subscription'; fields: { 'wallet': { name: 'wallet'; type: { kind: 'OBJECT'; name: 'Wallet'; ofType: null; } }; 'walletById': { name: 'walletById'; type: { kind: 'OBJECT'; name: 'Wallet'; ofType: null; } }; }; };
    'Transfer': { kind: 'OBJECT'; name: 'Transfer'; fields: { 'amount': { name: 'amount'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'at': { name: 'at'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'kind': { name: 'kind'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'ENUM'; name: 'TransferKind'; ofType: null; }; } }; 'lamports': { name: 'lamports'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'Lamports'; ofType: null; }; } }; 'signature': { name: 'signature'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; }; };
    'TransferConnection': { kind: 'OBJECT'; name: 'TransferConnection'; fields: { 'edges': { name: 'edges'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'LIST'; name: never; ofType: { kind: 'NON_NULL'; name: never; ofType: { kind: 'OBJECT'; name: 'TransferEdge'; ofType: null; }; }; }; } }; 'nodes': { name: 'nodes'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'LIST'; name: never; ofType: { kind: 'NON_NULL'; name: never; ofType: { kind: 'OBJECT'; name: 'Transfer'; ofType: null; }; }; }; } }; 'pageInfo': { name: 'pageInfo'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'OBJECT'; name: 'PageInfo'; ofType: null; }; } }; }; };
    'TransferEdge': { kind: 'OBJECT'; name: 'TransferEdge'; fields: { 'cursor': { name: 'cursor'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'node': { name: 'node'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'OBJECT'; name: 'Transfer'; ofType: null; }; } }; }; };
    'TransferKind': { name: 'TransferKind'; enumValues: 'COLLECTED' | 'RECEIVED' | 'WITHDRAWN'; };
    'UncollectableReason': { name: 'UncollectableReason'; enumValues: 'NO_SUCH_COIN' | 'HOLDER_REWARDS' | 'SHARED' | 'OTHER_CREATOR' | 'CASHBACK' | 'OTHER_CURRENCY' | 'NOTHING_WAITING' | 'RENT_TOO_HIGH' | 'BELOW_AMM_MINIMUM'; };
    'Wallet': { kind: 'OBJECT'; name: 'Wallet'; fields: { 'address': { name: 'address'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; 'balance': { name: 'balance'; type: { kind: 'OBJECT'; name: 'Balance'; ofType: null; } }; 'coins': { name: 'coins'; type: { kind: 'LIST'; name: never; ofType: { kind: 'NON_NULL'; name: never; ofType: { kind: 'OBJECT'; name: 'Coin'; ofType: null; }; }; } }; 'handle': { name: 'handle'; type: { kind: 'SCALAR'; name: 'String'; ofType: null; } }; 'history': { name: 'history'; type: { kind: 'OBJECT'; name: 'TransferConnection'; ofType: null; } }; 'id': { name: 'id'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'ID'; ofType: null; }; } }; 'profile': { name: 'profile'; type: { kind: 'OBJECT'; name: 'Profile'; ofType: null; } }; 'socialId': { name: 'socialId'; type: { kind: 'NON_NULL'; name: never; ofType: { kind: 'SCALAR'; name: 'String'; ofType: null; }; } }; }; };
};

/** An IntrospectionQuery representation of your schema.
 *
 * @remarks
 * This is an introspection of your schema saved as a file by GraphQLSP.
 * It will automatically be used by `gql.tada` to infer the types of your GraphQL documents.
 * If you need to reuse this data or update your `scalars`, update `tadaOutputLocation` to
 * instead save to a .ts instead of a .d.ts file.
 */
export type introspection = {
  name: never;
  query: 'Query';
  mutation: 'Mutation';
  subscription: 'Subscription';
  types: introspection_types;
};

import * as gqlTada from 'gql.tada';

declare module 'gql.tada' {
  interface setupSchema {
    introspection: introspection
  }
}