use graphql_client::{GraphQLQuery, QueryBody, Response};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

#[derive(GraphQLQuery)]
#[graphql(
    schema_path = "schema.graphql",
    query_path = "operations.graphql",
    response_derives = "Debug"
)]
struct Collect;

#[derive(GraphQLQuery)]
#[graphql(schema_path = "schema.graphql", query_path = "operations.graphql")]
struct Wallets;

/// Also reads the body of a refusal, and the seconds of its `Retry-After`.
fn send<Variables: Serialize, Data: DeserializeOwned>(
    body: QueryBody<Variables>,
) -> (u16, Option<String>, Response<Data>) {
    let url = format!("{}/graphql", std::env::var("BASE_URL").unwrap());
    let mut response = ureq::post(&url)
        .config()
        .http_status_as_error(false)
        .build()
        .send_json(&body)
        .unwrap();
    let seconds = response.headers().get("retry-after");
    let seconds = seconds.map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    (status, seconds, response.body_mut().read_json().unwrap())
}

fn code_of<Data>(response: &Response<Data>) -> serde_json::Value {
    let error = &response.errors.as_ref().unwrap()[0];
    error.extensions.as_ref().unwrap()["code"].clone()
}

fn main() {
    let social_id = "98".to_owned();
    let (_, _, response) = send::<_, collect::ResponseData>(Collect::build_query(
        collect::Variables { social_id },
    ));
    let nothing = response.data.unwrap().collect.unwrap();
    let Some(collect::ErrorCode::NOTHING_TO_COLLECT) = nothing.error else {
        panic!("{:?}", nothing.error)
    };

    let find = || {
        let handles = vec!["creator".to_owned(), "nobodyatall".to_owned()];
        let query = Wallets::build_query(wallets::Variables { handles });
        send::<_, wallets::ResponseData>(query)
    };
    let (_, _, partial) = find();
    let code = code_of(&partial);
    let wallets = partial.data.unwrap().wallets.into_iter();
    let handles = wallets.map(|wallet| wallet.and_then(|each| each.handle));

    let (status, seconds, refused) = find();
    println!(
        "{}",
        json!({
            "nothing": { "code": "NOTHING_TO_COLLECT", "collected": nothing.collected },
            "partial": { "code": code, "handles": handles.collect::<Vec<_>>() },
            "refused": { "code": code_of(&refused), "status": status, "seconds": seconds },
        })
    );
}
