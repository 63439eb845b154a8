package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"example.com/client/api"
)

func main() {
	ctx := context.Background()
	client := must(api.NewClientWithResponses(os.Getenv("BASE_URL")))
	collect := func() *api.CollectFeesResponse {
		return must(client.CollectFeesWithResponse(ctx, api.CollectFeesJSONRequestBody{SocialId: "98"}))
	}
	failure := must(collect().JSON400.ValueByDiscriminator())
	nothing := failure.(api.NothingToCollect)

	missing := must(client.LookUpWalletWithResponse(ctx, &api.LookUpWalletParams{Handle: "nobodyatall"}))

	refused := collect()
	print := map[string]any{
		"nothing": map[string]any{"code": nothing.Error, "collected": nothing.Collected},
		"missing": map[string]any{"code": missing.JSON404.Error},
		"refused": map[string]any{
			"code":    refused.JSON429.Error,
			"status":  refused.StatusCode(),
			"seconds": fmt.Sprint(refused.Headers429.RetryAfter),
		},
	}
	fmt.Println(string(must(json.Marshal(print))))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
