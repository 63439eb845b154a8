package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// header keeps the headers of the last response.
type header struct{ last http.Header }

func (h *header) Do(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		h.last = response.Header
	}
	return response, err
}

func main() {
	ctx := context.Background()
	headers := &header{}
	client := graphql.NewClient(os.Getenv("BASE_URL")+"/graphql", headers)
	collected, err := Collect(ctx, client, "98")
	if err != nil {
		panic(err)
	}
	nothing := collected.Collect

	find := func() (*WalletsResponse, error) {
		return Wallets(ctx, client, []string{"creator", "nobodyatall"})
	}
	partial, err := find()
	var errs gqlerror.List
	if !errors.As(err, &errs) {
		panic(err)
	}
	handles := []*string{}
	for _, wallet := range partial.Wallets {
		if wallet == nil {
			handles = append(handles, nil)
		} else {
			handles = append(handles, wallet.Handle)
		}
	}

	_, err = find()
	var refused *graphql.HTTPError
	if !errors.As(err, &refused) {
		panic(err)
	}
	text, err := json.Marshal(map[string]any{
		"nothing": map[string]any{"code": nothing.Error, "collected": nothing.Collected},
		"partial": map[string]any{"code": errs[0].Extensions["code"], "handles": handles},
		"refused": map[string]any{
			"code":    refused.Response.Errors[0].Extensions["code"],
			"status":  refused.StatusCode,
			"seconds": headers.last.Get("Retry-After"),
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
