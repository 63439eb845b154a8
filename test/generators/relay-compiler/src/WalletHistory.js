import { graphql } from "relay-runtime";

graphql`
  fragment WalletHistory_wallet on Wallet
  @refetchable(queryName: "WalletHistoryPaginationQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 1 }, cursor: { type: "String" }) {
    handle
    history(first: $count, after: $cursor) @connection(key: "WalletHistory_history") {
      edges {
        node {
          kind
          amount
        }
      }
    }
  }
`;

graphql`
  query WalletHistoryQuery($handles: [String!]!) {
    wallets(handles: $handles) {
      handle
    }
  }
`;

graphql`
  mutation WalletHistoryCollectMutation($socialId: String!) {
    collect(socialId: $socialId) {
      error
      collected
    }
  }
`;
