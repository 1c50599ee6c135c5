package stream

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
)

// The stored forms, all AES-256-GCM with a random nonce in front:
//
//   - An event's data is {"$sealed":"…"}, in base64, bound to its stream, subject
//     and name.
//   - A subject's key is one byte for the form, eight bytes that identify its master key,
//     and the encrypted key, bound to its workspace and subject. The eight bytes
//     distinguish a wrong master key from a damaged key.
const (
	keySize      = 32
	wrapForm     = 1
	masterIDSize = 8
	wrapHead     = 1 + masterIDSize

	sealedHead = subjectkey.SealedHead
	sealedTail = subjectkey.SealedTail
)

func newKey() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// newAEAD returns the cipher of a key. Its nonces are random, and part of its output.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// masterID identifies a master key without revealing anything of it.
func masterID(master []byte) (id [masterIDSize]byte) {
	mac := hmac.New(sha256.New, master)
	mac.Write([]byte("holdfast/master"))
	copy(id[:], mac.Sum(nil))
	return id
}

// bound makes additional data from several texts. Each is preceded by its length, so that no
// other texts produce the same data.
func bound(purpose string, texts ...string) []byte {
	b := []byte(purpose)
	for _, t := range texts {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	return b
}

// wrap returns a subject's key as it is stored.
func (v *Vault) wrap(workspace, subject string, key []byte) []byte {
	head := append([]byte{wrapForm}, v.id[:]...)
	return v.master.Seal(head, nil, key, bound("holdfast/subject", workspace, subject))
}

// unwrap returns the cipher of a subject's key, or nil for a forgotten subject.
func (v *Vault) unwrap(workspace, subject string, wrapped []byte) (cipher.AEAD, error) {
	if wrapped == nil {
		return nil, nil
	}
	if len(wrapped) < wrapHead || wrapped[0] != wrapForm {
		return nil, damagedKey(subject)
	}
	if !bytes.Equal(wrapped[1:wrapHead], v.id[:]) {
		return nil, fault.New(fault.Forbidden,
			"the key of subject %q was encrypted with another master key: create the vault with that key", subject).
			With("subject", subject)
	}
	key, err := v.master.Open(nil, nil, wrapped[wrapHead:], bound("holdfast/subject", workspace, subject))
	if err != nil || len(key) != keySize {
		return nil, damagedKey(subject)
	}
	return newAEAD(key)
}

func damagedKey(subject string) error {
	return fault.New(fault.DatabaseDamaged,
		"the stored key of subject %q is damaged, or belongs to another subject or workspace: restore it from a backup", subject).
		With("subject", subject)
}

// seal returns an event's data as it is stored.
func seal(key cipher.AEAD, e *Event) []byte {
	data := e.Data
	if data == nil {
		data = []byte("{}")
	}
	secret := key.Seal(nil, nil, data, eventBound(e))
	b := make([]byte, 0, sealedSize(len(data)))
	b = append(b, sealedHead...)
	b = base64.StdEncoding.AppendEncode(b, secret)
	return append(b, sealedTail...)
}

// unseal decrypts an event's data.
func unseal(e *Event, keys map[string]cipher.AEAD) error {
	if e.Subject == "" {
		if subjectkey.IsSealed(e.Data) {
			return damagedEvent(e, "its data is encrypted, but it has no subject")
		}
		return nil
	}
	if e.Forgotten {
		return nil
	}
	key, known := keys[e.Subject]
	if !known {
		return damagedEvent(e, "its subject has no key, although the subject was not forgotten")
	}
	if !subjectkey.IsSealed(e.Data) {
		return damagedEvent(e, "its data is not encrypted, or was already decrypted")
	}
	if key == nil {
		e.Data, e.Forgotten = []byte("null"), true
		return nil
	}
	secret, err := base64.StdEncoding.Strict().AppendDecode(nil, e.Data[len(sealedHead):len(e.Data)-len(sealedTail)])
	if err == nil {
		e.Data, err = key.Open(nil, nil, secret, eventBound(e))
	}
	if err != nil {
		return damagedEvent(e, "its data, name, subject or stream was changed after it was appended")
	}
	return nil
}

func eventBound(e *Event) []byte { return bound("holdfast/event", e.Stream, e.Subject, e.Name) }

func damagedEvent(e *Event, why string) error {
	return fault.New(fault.DatabaseDamaged, "event %d of stream %s (%s) cannot be decrypted: %s", e.Version, e.Stream, e.Name, why).
		With("stream", e.Stream).With("version", int64(e.Version)).With("subject", e.Subject)
}

// sealedSize returns the size of data after encryption.
func sealedSize(plain int) int {
	const nonceAndTag = 12 + 16
	return len(sealedHead) + base64.StdEncoding.EncodedLen(plain+nonceAndTag) + len(sealedTail)
}

// checkPlain rejects an event with a subject whose name is invalid, whose data is already encrypted or would be too large
// when encrypted, or whose data is not valid JSON: the append sees only the encrypted form and cannot check the data
// inside.
func checkPlain(e *Event) error {
	if e.Subject == "" {
		return nil
	}
	if err := subjectkey.Check(e.Subject); err != nil {
		return err
	}
	if subjectkey.IsSealed(e.Data) {
		return fault.New(fault.Validation, "the data is already encrypted: append the plain data")
	}
	if size := sealedSize(len(e.Data)); size > strictjson.MaxBytes {
		return fault.New(fault.PayloadTooLarge, "the data has %d bytes (%d when encrypted), but at most %d are allowed", len(e.Data), size, strictjson.MaxBytes)
	}
	if e.Data == nil {
		return nil
	}
	return strictjson.Check(e.Data)
}
